package bus

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// dangerous refuses a change of a stream that would lose messages, or the
// safety of appends.
func dangerous(have *jetstream.StreamInfo, want jetstream.StreamConfig) error {
	c := have.Config
	var errs []error
	refuse := func(field string, is, want any, why string) {
		errs = append(errs, fmt.Errorf("%s is %v and would become %v: %s", field, is, want, why))
	}
	if c.Retention != want.Retention {
		refuse("retention", c.Retention, want.Retention, "messages would go when they are acknowledged; another stream has this name, rename it")
	}
	if c.Storage != want.Storage {
		refuse("storage", c.Storage, want.Storage, "it cannot be changed; use the option that the stream was created with, or back it up and delete it")
	}
	if c.Discard == jetstream.DiscardNew && want.Discard == jetstream.DiscardOld {
		refuse("discard", c.Discard, want.Discard, "the oldest states would be lost")
	}
	if lost := missingFrom(want.Subjects, c.Subjects); len(lost) > 0 && c.Mirror == nil {
		refuse("subjects", c.Subjects, want.Subjects, "another stream has this name, rename it")
	}
	if want.Replicas < c.Replicas {
		refuse("replicas", c.Replicas, want.Replicas, "copies would be lost; ask for at least as many, or use 'nats stream edit' if you mean it")
	}
	if used := int64(min(have.State.Bytes, 1<<62)); want.MaxBytes < used { //nolint:gosec // bounded
		refuse("max bytes", c.MaxBytes, want.MaxBytes, fmt.Sprintf("it holds %d already; grant more", used))
	}
	if want.MaxMsgsPerSubject > 0 && (c.MaxMsgsPerSubject > want.MaxMsgsPerSubject || c.MaxMsgsPerSubject == unlimited) {
		refuse("messages per subject", c.MaxMsgsPerSubject, want.MaxMsgsPerSubject, "the oldest would be lost; an older version of metalbus is being run against a newer bus")
	}
	return errors.Join(errs...)
}

// missingFrom are the subjects of old that are not among fresh.
func missingFrom(fresh, old []string) []string {
	return slices.DeleteFunc(slices.Clone(old), func(s string) bool { return slices.Contains(fresh, s) })
}

// merged is what the stream is to become: as wanted, with what the server and
// the administrator set besides.
func merged(have, want jetstream.StreamConfig, o InitOptions) (next jetstream.StreamConfig, changed bool) {
	next = have
	next.Subjects, next.Description = want.Subjects, want.Description
	next.MaxMsgsPerSubject, next.MaxBytes, next.MaxAge, next.MaxMsgSize = want.MaxMsgsPerSubject, want.MaxBytes, want.MaxAge, want.MaxMsgSize
	next.Discard, next.Replicas, next.AllowDirect = want.Discard, want.Replicas, want.AllowDirect
	next.AllowMsgSchedules, next.AllowMsgTTL, next.AllowRollup = want.AllowMsgSchedules, want.AllowMsgTTL, want.AllowRollup
	if next.MaxMsgSize < have.MaxMsgSize {
		next.MaxMsgSize = have.MaxMsgSize
	}
	next.Metadata = maps.Clone(have.Metadata)
	if epoch, ok := want.Metadata[metaEpoch]; ok && (o.NewEpoch || have.Metadata[metaEpoch] == "") {
		if next.Metadata == nil {
			next.Metadata = map[string]string{}
		}
		next.Metadata[metaEpoch] = epoch
	}
	return next, !sameStream(have, next)
}

func sameStream(a, b jetstream.StreamConfig) bool {
	return slices.Equal(a.Subjects, b.Subjects) && a.Description == b.Description &&
		a.MaxMsgsPerSubject == b.MaxMsgsPerSubject && a.MaxBytes == b.MaxBytes && a.MaxAge == b.MaxAge &&
		a.MaxMsgSize == b.MaxMsgSize && a.Discard == b.Discard && a.Replicas == b.Replicas &&
		a.AllowDirect == b.AllowDirect && a.AllowMsgSchedules == b.AllowMsgSchedules &&
		a.AllowMsgTTL == b.AllowMsgTTL && a.AllowRollup == b.AllowRollup && maps.Equal(a.Metadata, b.Metadata)
}
