package stories_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// script tells a story line by line.
type script struct {
	*testing.T
	site  *site
	story story
	heals map[string]func()
	never []never
}

// never is a condition that no revision from one on may meet.
type never struct {
	line string
	cond condition
	from int
}

// tell tells a story on a site.
func tell(t *testing.T, s *site, st story) {
	t.Helper()
	r := &script{T: t, site: s, story: st, heals: map[string]func(){}}
	r.password("right")
	for i, line := range st.lines {
		words, err := split(r.named(line))
		if err == nil && len(words) > 0 {
			err = r.do(line, words)
		}
		if err != nil {
			t.Fatalf("line %d, %s: %v", i+1, line, err)
		}
	}
	r.check()
}

// named puts the site's own names into a line.
func (r *script) named(line string) string {
	address, _, _ := r.site.login()
	names := []string{"$ADDRESS", address, "$SECRET", r.site.name + "-bmc"}
	if l, ok := r.site.machine.(library); ok {
		names = append(names, shelf, l.shelf())
	}
	return strings.NewReplacer(names...).Replace(line)
}

// shelf is where stories find images.
const shelf = "http://192.0.2.80"

// wired is a machine that boots from a network card of its own.
type wired interface{ mac() string }

// library is a machine that has to be given images which are really there.
type library interface{ shelf() string }

// split splits a line into words; single or double quotes hold words together.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, c := range line {
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inWord = c, true
		case c == ' ' && quote == 0:
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case c == '#' && quote == 0 && !inWord:
			return words, nil
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// do carries a line out.
func (r *script) do(line string, words []string) error {
	r.Helper()
	args := words[1:]
	switch words[0] {
	case "create":
		return r.create(args)
	case "set":
		return r.set(args)
	case "annotate":
		r.site.apply(func(o *v1alpha1.BareMetalHost) { annotate(o, args) })
		return nil
	case "delete":
		r.site.remove()
		return nil
	case "secret":
		r.password(args[0])
		return nil
	case "dataimage", "subscribe", "unsubscribe":
		return r.ask(words[0], args)
	case "fault":
		return r.fault(args)
	case "heal":
		return r.heal(strings.Join(args, " "))
	case "image":
		return r.image(args)
	case "network":
		return r.network(args[0])
	case "settings", "updates", "policy":
		return r.firmware(words[0], args)
	case "restart":
		r.site.restart()
		return nil
	case "pass":
		d, err := time.ParseDuration(args[0])
		r.site.pass(d)
		return err
	default:
		return r.judge(line, words[0], args)
	}
}

// judge carries out the lines that look at what happens.
func (r *script) judge(line, verb string, args []string) error {
	r.Helper()
	c, err := parseConditions(args, r.site)
	if err != nil {
		return err
	}
	switch verb {
	case "wait":
		r.site.until(strings.Join(args, " "), c)
	case "expect":
		if h := r.site.at(); !c.holds(h) {
			return fmt.Errorf("not so: %s", describe(h))
		}
		if c.object != nil && !c.object(r.site.shown()) {
			return fmt.Errorf("not so: %+v", r.site.shown())
		}
		if c.firmware != nil && !c.firmware(r.site.user.(*play).firmware()) {
			return fmt.Errorf("not so: %+v", r.site.user.(*play).firmware())
		}
	case "never":
		r.never = append(r.never, never{line, c, len(r.site.history())})
	default:
		return fmt.Errorf("no such statement")
	}
	return nil
}

// check looks at what must never have been so.
func (r *script) check() {
	r.Helper()
	past := r.site.history()
	for _, n := range r.never {
		for _, h := range past[min(n.from, len(past)):] {
			if n.cond.holds(h) {
				r.Errorf("%s: it was so at revision %d: %s", n.line, h.Rev, describe(h))
			}
		}
	}
}

// create makes the host: the usual one, changed by the story's file host.yaml and
// by what the line sets.
func (r *script) create(args []string) error {
	address, _, _ := r.site.login()
	var err error
	r.site.apply(func(o *v1alpha1.BareMetalHost) {
		o.Spec.Online = true
		o.Spec.BootMACAddress = "00:00:5e:00:53:01"
		if m, ok := r.site.machine.(wired); ok {
			o.Spec.BootMACAddress = m.mac()
		}
		o.Spec.BMC = v1alpha1.BMCDetails{Address: address, CredentialsName: r.site.name + "-bmc"}
		if text, ok := r.story.file("host.yaml"); ok {
			err = yaml.UnmarshalStrict([]byte(text), o)
		}
		if err == nil {
			err = setAll(o, args)
		}
	})
	return err
}

func (r *script) set(args []string) error {
	var err error
	r.site.apply(func(o *v1alpha1.BareMetalHost) { err = setAll(o, args) })
	return err
}

// setAll sets fields by their path: spec.online=false, spec.image=null,
// spec.image.url=http://…. What is no JSON is a text.
func setAll(o *v1alpha1.BareMetalHost, args []string) error {
	for _, a := range args {
		path, value, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%q: want a path and a value", a)
		}
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			v = value
		}
		if keys := strings.Split(path, "."); keys[0] == "annotations" {
			annotate(o, []string{strings.Join(keys[1:], ".") + "=" + value})
			continue
		}
		if err := setField(o, strings.Split(path, "."), v); err != nil {
			return err
		}
	}
	return nil
}

func setField(o *v1alpha1.BareMetalHost, path []string, v any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	at := all
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	if last := path[len(path)-1]; v == nil {
		delete(at, last)
	} else {
		at[last] = v
	}
	if text, err = json.Marshal(all); err != nil {
		return err
	}
	status := o.Status
	*o = v1alpha1.BareMetalHost{}
	if err := json.Unmarshal(text, o); err != nil {
		return err
	}
	o.Status = status
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	return nil
}

// annotate sets annotations, KEY=VALUE or KEY, and removes them: KEY-.
func annotate(o *v1alpha1.BareMetalHost, args []string) {
	for _, a := range args {
		key, value, given := strings.Cut(a, "=")
		if bare, removed := strings.CutSuffix(key, "-"); removed && !given {
			delete(o.Annotations, bare)
			continue
		}
		o.Annotations[key] = value
	}
}

// password puts a password into the host's Secret: the right one, or any other;
// gone deletes it.
func (r *script) password(what string) {
	_, user, right := r.site.login()
	switch what {
	case "gone":
		r.site.secret(nil)
	case "right":
		r.site.secret(map[string]string{"username": user, "password": right})
	default:
		r.site.secret(map[string]string{"username": user, "password": what})
	}
}

func (r *script) fault(words []string) error {
	heal, err := r.site.fault(words)
	if err != nil {
		return err
	}
	key := strings.Join(words[:min(len(words), 2)], " ")
	if before := r.heals[key]; before != nil {
		r.heals[key] = func() { before(); heal() }
	} else {
		r.heals[key] = heal
	}
	return nil
}

// heal mends a fault, by its first words.
func (r *script) heal(key string) error {
	f := r.heals[key]
	if f == nil {
		return fmt.Errorf("there is no fault %q", key)
	}
	f()
	delete(r.heals, key)
	return nil
}

// revisions are the host at each revision, each with the one before it.
func revisions(past []lifecycle.Host, see func(before, after lifecycle.Host)) {
	var before lifecycle.Host
	for _, h := range past {
		see(before, h)
		before = h
	}
}
