package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// maxDeaths is how many processes may die with a message in hand before it is
// set aside.
const maxDeaths = 3

// notes keeps, in a file that outlives the process, which messages are in
// hand. What a dead process left there is counted in a bucket that all
// replicas watch, so that a message that kills them one after another is
// found out without anybody looking into it.
type notes struct {
	b       *Bus
	service string
	file    *os.File
	free    chan int64
	kv      jetstream.KeyValue
	watcher jetstream.KeyWatcher

	mu     sync.Mutex
	deaths map[uint64]int
}

const noteSize = 8

// openNotes counts what the process before this one left, and begins anew.
// Without a state directory it is nil, which notes nothing.
func (b *Bus) openNotes(ctx context.Context, service string) (*notes, error) {
	if b.cfg.StateDir == "" {
		return nil, nil
	}
	path := filepath.Join(b.cfg.StateDir, service+".inhand")
	left, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	n := &notes{b: b, service: service, free: make(chan int64, b.cfg.Workers), deaths: map[uint64]int{}}
	if err := n.watch(ctx); err != nil {
		b.log.WarnContext(ctx, "cannot count messages that kill processes", keyError, err.Error())
	} else {
		n.countAll(ctx, left)
	}
	if n.file, err = os.Create(path); err != nil { //nolint:gosec // as above
		return nil, fmt.Errorf("state directory: %w", err)
	}
	for i := range b.cfg.Workers {
		n.free <- int64(i)
	}
	return n, nil
}

func (n *notes) key(seq uint64) string { return n.prefix() + strconv.FormatUint(seq, 10) }
func (n *notes) prefix() string        { return n.b.cfg.Cluster + "." + n.service + "." }

// watch follows the counts. It returns once those are known that there were: a message
// must not be handled before that.
func (n *notes) watch(ctx context.Context) (err error) {
	if n.kv, err = n.b.js.KeyValue(ctx, BucketCrashed); err != nil {
		return err
	}
	if n.watcher, err = n.kv.Watch(ctx, n.prefix()+"*"); err != nil {
		return err
	}
	updates, known := n.watcher.Updates(), make(chan struct{})
	go func() {
		seen := sync.OnceFunc(func() { close(known) })
		defer seen()
		for e := range updates {
			if e == nil { // what was there at the beginning ends
				seen()
			} else {
				n.noted(e)
			}
		}
	}()
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(n.b.cfg.Timing.Reply):
		return ErrUnanswered
	}
}

func (n *notes) noted(e jetstream.KeyValueEntry) {
	seq, err := strconv.ParseUint(e.Key()[len(n.prefix()):], 10, 64)
	if err != nil {
		return
	}
	count, _ := strconv.Atoi(string(e.Value()))
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Operation() != jetstream.KeyValuePut {
		delete(n.deaths, seq)
		return
	}
	n.deaths[seq] = count
}

func (n *notes) countAll(ctx context.Context, left []byte) {
	for ; len(left) >= noteSize; left = left[noteSize:] {
		seq := binary.LittleEndian.Uint64(left)
		if seq == 0 {
			continue
		}
		if err := n.count(ctx, seq); err != nil {
			n.b.log.WarnContext(ctx, "count a message that was in hand when the process died", keySequence, seq, keyError, err.Error())
		}
	}
}

func (n *notes) count(ctx context.Context, seq uint64) error {
	for ctx.Err() == nil {
		e, err := n.kv.Get(ctx, n.key(seq))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			if _, err = n.kv.Create(ctx, n.key(seq), []byte("1")); errors.Is(err, jetstream.ErrKeyExists) {
				continue
			}
			return n.counted(seq, 1, err)
		}
		if err != nil {
			return err
		}
		count, _ := strconv.Atoi(string(e.Value()))
		if _, err = n.kv.Update(ctx, n.key(seq), []byte(strconv.Itoa(count+1)), e.Revision()); !isConflict(err) {
			return n.counted(seq, count+1, err)
		}
	}
	return ctx.Err()
}

// counted remembers a count of our own at once: the message may come before the watch
// tells of it.
func (n *notes) counted(seq uint64, count int, err error) error {
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.deaths[seq] = count
	}
	return err
}

// condemned reports whether too many processes died with the message in hand.
func (n *notes) condemned(seq uint64) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.deaths[seq] >= maxDeaths
}

// begin notes that the message is in hand.
func (n *notes) begin(t Trigger) (slot int64) {
	if n == nil || t.Wake {
		return -1
	}
	slot = <-n.free
	n.write(slot, t.Seq)
	return slot
}

// end strikes the note out. The message killed nobody, so it is no suspect any more.
func (n *notes) end(ctx context.Context, t Trigger, slot int64) {
	if n == nil || slot < 0 {
		return
	}
	n.write(slot, 0)
	n.free <- slot
	n.mu.Lock()
	suspect := n.deaths[t.Seq] > 0
	n.mu.Unlock()
	if suspect {
		if err := n.kv.Delete(ctx, n.key(t.Seq)); err != nil {
			n.b.log.WarnContext(ctx, "clear a suspect message", keySequence, t.Seq, keyError, err.Error())
		}
	}
}

func (n *notes) write(slot int64, seq uint64) {
	var note [noteSize]byte
	binary.LittleEndian.PutUint64(note[:], seq)
	_, _ = n.file.WriteAt(note[:], slot*noteSize) // without a note a deadly message is found out later
}

func (n *notes) close() {
	if n == nil {
		return
	}
	if n.watcher != nil {
		_ = n.watcher.Stop()
	}
	_ = n.file.Close()
}
