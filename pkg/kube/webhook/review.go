package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxReview bounds a question: two objects of the greatest size that the API
// stores, and room for what stands around them.
const maxReview = 8 << 20

// judge answers a question of the API. The error says that the question makes
// no sense.
type judge func(*admissionv1.AdmissionRequest) (answer, error)

// on is a judge of changes of one kind.
func on[T any](rules func(change[T]) answer) judge {
	return func(q *admissionv1.AdmissionRequest) (answer, error) {
		before, err := decode[T](q.OldObject.Raw)
		if err != nil {
			return answer{}, fmt.Errorf("read the old object: %w", err)
		}
		after, err := decode[T](q.Object.Raw)
		if err != nil {
			return answer{}, fmt.Errorf("read the object: %w", err)
		}
		if before == nil && after == nil {
			return answer{}, nil // of nothing, nothing is wrong
		}
		return rules(change[T]{before, after}), nil
	}
}

func decode[T any](raw []byte) (*T, error) {
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // there may be no such object
	}
	o := new(T)
	return o, json.Unmarshal(raw, o)
}

// handler serves the questions to one webhook.
func (s *Server) handler(h hook) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := s.now()
		review, err := readReview(http.MaxBytesReader(w, r.Body, maxReview))
		if err != nil {
			s.log.Warn("a request was not a question of the Kubernetes API", keyPath, h.path(), keyError, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = s.ask(h, review.Request, begin)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // whoever has gone has no use for it
	})
}

func readReview(r io.Reader) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r).Decode(review); err != nil {
		return nil, fmt.Errorf("read the admission review: %w", err)
	}
	if review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
		return nil, fmt.Errorf("want an AdmissionReview of %s, got %s", admissionv1.SchemeGroupVersion, review.GroupVersionKind())
	}
	if review.Request == nil {
		return nil, errors.New("the admission review has no request")
	}
	return review, nil
}

func (s *Server) ask(h hook, q *admissionv1.AdmissionRequest, begin time.Time) *admissionv1.AdmissionResponse {
	found, err := h.judge(q)
	outcome, status := verdict(h, q, found, err)
	s.metrics.answered(h.name(), q.Operation, outcome, s.now().Sub(begin))
	return &admissionv1.AdmissionResponse{UID: q.UID, Allowed: status == nil, Result: status, Warnings: found.warnings}
}

// The outcomes of a question, as the metrics name them.
const (
	outcomeAllowed = "allowed"
	outcomeRefused = "refused"
	outcomeError   = "error"
)

// verdict is nil for a change that is allowed.
func verdict(h hook, q *admissionv1.AdmissionRequest, found answer, err error) (string, *metav1.Status) {
	switch {
	case err != nil:
		return outcomeError, &metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: err.Error()}
	case found.unsure != nil:
		return outcomeError, &metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: found.unsure.Error()}
	case len(found.errs) == 0:
		return outcomeAllowed, nil
	case q.Operation == admissionv1.Delete:
		return outcomeRefused, &metav1.Status{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message(found.errs), Details: details(h, q, found.errs),
		}
	default:
		return outcomeRefused, &metav1.Status{
			Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: message(found.errs), Details: details(h, q, found.errs),
		}
	}
}

func message(errs field.ErrorList) string { return errs.ToAggregate().Error() }

// details name each field and what is wrong with it, for programs.
func details(h hook, q *admissionv1.AdmissionRequest, errs field.ErrorList) *metav1.StatusDetails {
	d := &metav1.StatusDetails{Name: q.Name, Group: q.Resource.Group, Kind: h.kind}
	for _, err := range errs {
		d.Causes = append(d.Causes, metav1.StatusCause{Type: metav1.CauseType(err.Type), Message: err.ErrorBody(), Field: err.Field})
	}
	return d
}
