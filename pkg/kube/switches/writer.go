package switches

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

const (
	// configKey is the key of the list of switches.
	configKey = "switch-configs.conf"
	// retry is when what is missing is looked for again.
	retry = 10 * time.Second
	// requestTime bounds all requests for one namespace.
	requestTime = time.Minute
)

// writer writes the switches of one namespace at a time.
type writer struct {
	cfg    Config
	client client.Client
	now    func() time.Time
	// switches are those of a namespace, as they were last seen.
	switches func(namespace string) []*v1alpha1.BareMetalSwitch
}

// look brings the configuration of the namespace up to date, and says on each
// switch what became of it. Only the namespace of the key matters.
func (w *writer) look(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	list, verdicts, err := w.judge(ctx, key.Namespace)
	if err != nil {
		return 0, err
	}
	if err := w.write(ctx, key.Namespace, list); err != nil {
		v, isVerdict := errors.AsType[verdict](err)
		if !isVerdict {
			return 0, err
		}
		for _, s := range list {
			verdicts[s.BareMetalSwitch] = v
		}
	}
	for s, v := range verdicts {
		if err := w.tell(ctx, s, v); err != nil {
			return 0, err
		}
		if v != good() {
			again = retry
		}
	}
	return again, nil
}

// judge finds the switches of a namespace that can be used, and says what
// becomes of each.
func (w *writer) judge(ctx context.Context, namespace string) (list []wired, verdicts map[*v1alpha1.BareMetalSwitch]verdict, err error) {
	verdicts = map[*v1alpha1.BareMetalSwitch]verdict{}
	owners := map[string]string{} // of MAC addresses
	switches := w.switches(namespace)
	slices.SortFunc(switches, func(a, b *v1alpha1.BareMetalSwitch) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range switches {
		if s.DeletionTimestamp != nil {
			continue
		}
		l, err := w.login(ctx, s)
		mac := strings.ToLower(s.Spec.MACAddress)
		if owner := owners[mac]; err == nil && owner != "" {
			err = verdict{v1alpha1.SwitchConfigurationErrorReason, fmt.Sprintf("BareMetalSwitch %s has the same spec.macAddress %s.", owner, mac)}
		}
		if err == nil {
			list, verdicts[s], owners[mac] = append(list, wired{s, l}), good(), s.Name
			continue
		}
		v, isVerdict := errors.AsType[verdict](err)
		if !isVerdict {
			return nil, nil, err
		}
		verdicts[s] = v
	}
	return list, verdicts, nil
}

// verdict is what becomes of a switch: the reason and message of its condition.
// As an error it is the user's to mend.
type verdict struct{ reason, message string }

func (v verdict) Error() string { return v.message }

func good() verdict {
	return verdict{v1alpha1.SwitchReconciledReason, "The switch is in the configuration."}
}

func unusable(format string, args ...any) verdict {
	return verdict{v1alpha1.SwitchCredentialErrorReason, fmt.Sprintf(format, args...)}
}

// login reads the login of a switch.
func (w *writer) login(ctx context.Context, s *v1alpha1.BareMetalSwitch) (login, error) {
	if err := checkFields(s); err != nil {
		return login{}, verdict{v1alpha1.SwitchConfigurationErrorReason, err.Error() + "."}
	}
	ref := s.Spec.Credentials
	switch {
	case ref == nil || ref.Name == "":
		return login{}, unusable("spec.credentials is missing; name the Secret with username and password or ssh-privatekey.")
	case ref.Namespace != "" && ref.Namespace != s.Namespace:
		return login{}, unusable("The Secret %s/%s is of another namespace and is not read; put it into namespace %s.", ref.Namespace, ref.Name, s.Namespace)
	}
	secret, err := w.secret(ctx, s.Namespace, ref.Name)
	if err != nil {
		return login{}, err
	}
	l, err := loginFrom(secret.Data)
	if err != nil {
		return login{}, unusable("The Secret %s/%s can not be used: %v.", s.Namespace, ref.Name, err)
	}
	return l, nil
}

// secret reads a Secret; that it is not there is a verdict.
func (w *writer) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, unusable("The Secret %s/%s does not exist; create it.", namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s/%s: %w", namespace, name, err)
	}
	return secret, nil
}

// write fills both Secrets, the keys first: the list names them.
func (w *writer) write(ctx context.Context, namespace string, list []wired) error {
	file, keys := render(list, w.cfg.KeyFolder)
	if err := w.fill(ctx, namespace, w.cfg.KeySecret, func(map[string][]byte) map[string][]byte { return keys }); err != nil {
		return err
	}
	return w.fill(ctx, namespace, w.cfg.ConfigSecret, func(data map[string][]byte) map[string][]byte {
		data = maps.Clone(data)
		if data == nil {
			data = map[string][]byte{}
		}
		data[configKey] = []byte(file)
		return data
	})
}

// fill changes the content of a Secret, if that is something new.
func (w *writer) fill(ctx context.Context, namespace, name string, change func(map[string][]byte) map[string][]byte) error {
	secret, err := w.secret(ctx, namespace, name)
	if v, missing := errors.AsType[verdict](err); missing {
		return verdict{v1alpha1.SwitchConfigurationErrorReason, "The configuration can not be written. " + v.message}
	}
	if err != nil {
		return err
	}
	data := change(secret.Data)
	if maps.EqualFunc(data, secret.Data, bytes.Equal) {
		return nil
	}
	secret.Data = data
	if err := w.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("write the Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

// tell writes the condition of a switch, if that is something new.
func (w *writer) tell(ctx context.Context, s *v1alpha1.BareMetalSwitch, v verdict) error {
	value := metav1.ConditionFalse
	if v == good() {
		value = metav1.ConditionTrue
	}
	status := *s.Status.DeepCopy()
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.SupportedCondition)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.SwitchValidCondition, Status: value, Reason: v.reason, Message: v.message,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(w.now().UTC().Truncate(time.Second)),
	})
	if equality.Semantic.DeepEqual(status, s.Status) {
		return nil
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": s.ResourceVersion}, "status": status})
	if err != nil {
		return fmt.Errorf("encode the status of BareMetalSwitch %s/%s: %w", s.Namespace, s.Name, err)
	}
	now := &v1alpha1.BareMetalSwitch{}
	now.Namespace, now.Name = s.Namespace, s.Name
	if err := w.client.Status().Patch(ctx, now, client.RawPatch(types.MergePatchType, text)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of BareMetalSwitch %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}
