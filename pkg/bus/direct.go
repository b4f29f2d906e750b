package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// stored is a message as a stream holds it.
type stored struct {
	subject string
	seq     uint64
	header  nats.Header
	data    []byte
}

// direct asks any replica of a stream for the newest message of each of some
// subjects, in one request. All requests share one subscription, so that a
// read changes nothing in the servers' routing. An answer counts only if it
// came in whole: a time-out in the middle of it must not read as "no more".
type direct struct {
	nc     *nats.Conn
	prefix string // of the API
	inbox  string

	next    atomic.Uint64
	mu      sync.Mutex
	waiting map[string]chan *nats.Msg
}

// maxAnswers is the server's own limit of messages in one answer.
const maxAnswers = 1024

func newDirect(nc *nats.Conn, prefix string) (*direct, error) {
	d := &direct{nc: nc, prefix: prefix, inbox: nc.NewRespInbox(), waiting: map[string]chan *nats.Msg{}}
	if _, err := nc.Subscribe(d.inbox+".*", d.deliver); err != nil {
		return nil, fmt.Errorf("subscribe to answers: %w", err)
	}
	return d, nil
}

func (d *direct) deliver(m *nats.Msg) {
	token := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	d.mu.Lock()
	ch := d.waiting[token]
	d.mu.Unlock()
	if ch == nil {
		return // whoever asked has given up
	}
	select {
	case ch <- m:
	default: // more than the server may send
	}
}

// lastQuery is the body of the request.
type lastQuery struct {
	Subjects []string `json:"multi_last"`
	UpToSeq  uint64   `json:"up_to_seq,omitempty"`
}

// last are the newest messages of the subjects, which may hold wildcards, in
// the order of their sequences; none newer than upTo unless that is 0.
func (d *direct) last(ctx context.Context, stream string, upTo uint64, expect int, subjects ...string) ([]stored, error) {
	ch, done, err := d.send(stream, lastQuery{Subjects: subjects, UpToSeq: upTo}, min(maxAnswers, expect)+1) // room for all and the end
	if err != nil {
		return nil, err
	}
	defer done()
	return d.collect(ctx, ch)
}

// at is the message of a sequence, none if it is not kept. Its answer has no end to it.
func (d *direct) at(ctx context.Context, stream string, seq uint64) ([]stored, error) {
	ch, done, err := d.send(stream, map[string]uint64{"seq": seq}, 1)
	if err != nil {
		return nil, err
	}
	defer done()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: read: %w", ErrUnanswered, ctx.Err())
	case m := <-ch:
		if header(m.Header, "Status") == "404" {
			return nil, nil
		}
		one, _, err := parseAnswer(m)
		return []stored{one}, err
	}
}

// send asks; the answers come into the channel until done is called.
func (d *direct) send(stream string, query any, room int) (answers <-chan *nats.Msg, done func(), err error) {
	body, err := json.Marshal(query)
	if err != nil {
		return nil, nil, err
	}
	token := strconv.FormatUint(d.next.Add(1), 36)
	ch := make(chan *nats.Msg, room)
	d.mu.Lock()
	d.waiting[token] = ch
	d.mu.Unlock()
	done = func() {
		d.mu.Lock()
		delete(d.waiting, token)
		d.mu.Unlock()
	}
	if err := d.nc.PublishRequest(d.prefix+"DIRECT.GET."+stream, d.inbox+"."+token, body); err != nil {
		done()
		return nil, nil, err
	}
	return ch, done, nil
}

func (d *direct) collect(ctx context.Context, ch <-chan *nats.Msg) ([]stored, error) {
	var all []stored
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: read: %w", ErrUnanswered, ctx.Err())
		case m := <-ch:
			one, more, err := parseAnswer(m)
			if err != nil {
				return nil, err
			}
			if more {
				all = append(all, one)
				continue
			}
			if left := header(m.Header, "Nats-Num-Pending"); left != "" && left != "0" {
				return nil, fmt.Errorf("read: the answer was cut short by %s messages", left)
			}
			return all, nil
		}
	}
}

// parseAnswer reads one message of an answer; more is false for the last,
// which carries nothing.
func parseAnswer(m *nats.Msg) (one stored, more bool, err error) {
	status, description := header(m.Header, "Status"), header(m.Header, "Description")
	switch {
	case status == "204", status == "404" && description == "No Results":
		return stored{}, false, nil
	case status == "503":
		return stored{}, false, ErrUnavailable
	case status != "":
		return stored{}, false, fmt.Errorf("read: server says %s %s", status, description)
	}
	seq, err := strconv.ParseUint(header(m.Header, "Nats-Sequence"), 10, 64)
	if err != nil {
		return stored{}, false, fmt.Errorf("read: sequence of the answer: %w", err)
	}
	return stored{subject: header(m.Header, "Nats-Subject"), seq: seq, header: m.Header, data: m.Data}, true, nil
}
