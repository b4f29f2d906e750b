package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxPages bounds how far a collection is followed.
const maxPages = 100

type collectionBody struct {
	Members []json.RawMessage
	Next    string `json:"Members@odata.nextLink"`
}

// systemsPath is the path of the collection of systems, which needs the service root.
func (l *lane) systemsPath(ctx context.Context) (string, *Error) {
	if e := l.take(ctx); e != nil {
		return "", e
	}
	defer l.leave()
	if e := l.login(ctx); e != nil {
		return "", e
	}
	return l.service.systems, nil
}

// levels is how deep the service expands; 0 before the first login and without
// expansion.
func (t *talk) levels() int {
	if t.lane.take(t.ctx) != nil {
		return 0
	}
	defer t.lane.leave()
	if t.lane.service == nil {
		return 0
	}
	return t.lane.service.levels
}

// members reads a collection as it is: its members are links. A collection that is
// not there is empty.
func (t *talk) members(path string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for range maxPages {
		var page collectionBody
		found, _, err := t.get(path, &page)
		if err != nil || !found {
			return all, err
		}
		all = append(all, page.Members...)
		if path = pathOf(page.Next); path == "" {
			break
		}
		if i := strings.IndexByte(page.Next, '?'); i >= 0 {
			path += page.Next[i:]
		}
	}
	return all, nil
}

// expanded reads a resource with what it links to in place, as deep as asked if the
// service goes so deep, else as it is.
func (t *talk) expanded(path string, levels int, into any) (bool, error) {
	can := t.levels()
	if can == 0 {
		found, _, err := t.get(path, into)
		return found, err
	}
	query := "?$expand=."
	if levels > 1 && can >= levels {
		query += fmt.Sprintf("($levels=%d)", levels)
	}
	found, _, err := t.get(path+query, into)
	if _, refused := refusedByBMC(err, http.StatusBadRequest, http.StatusNotImplemented, http.StatusMethodNotAllowed); refused {
		found, _, err = t.get(path, into)
	}
	return found, err
}

// all reads the members of a collection, with one request if the service expands,
// else one by one. A collection that is not there is empty.
func (t *talk) all(path string) ([]json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	var page collectionBody
	found, err := t.expanded(path, 1, &page)
	if err != nil || !found {
		return nil, err
	}
	members := page.Members
	if page.Next != "" {
		if members, err = t.members(path); err != nil {
			return nil, err
		}
	}
	return t.whole(members)
}

// whole replaces links by what they lead to. What is not there is left out.
func (t *talk) whole(members []json.RawMessage) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(members))
	for _, m := range members {
		where, isLink := onlyLink(m)
		if !isLink {
			out = append(out, m)
			continue
		}
		var body json.RawMessage
		found, _, err := t.get(where, &body)
		if err != nil && !isOdd(err) {
			return nil, err
		}
		if found {
			out = append(out, body)
		}
	}
	return out, nil
}

// onlyLink tells whether a member is nothing but a link, and where it leads.
func onlyLink(m json.RawMessage) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(m, &fields) != nil || len(fields) != 1 {
		return "", false
	}
	var l link
	_ = json.Unmarshal(m, &l) // what is no link leads nowhere
	p := pathOf(l.ID)
	return p, p != ""
}

// isOdd tells whether an error concerns one resource only: a part that the BMC cannot
// show, while it is well otherwise.
func isOdd(err error) bool {
	e, isOurs := errors.AsType[*Error](err)
	return isOurs && (e.is(ErrNotRedfish) || e.is(ErrRefused) && e.Status >= http.StatusInternalServerError)
}
