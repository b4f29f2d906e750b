package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// maxDocument bounds a document in METAL_DATA.
const maxDocument = 1 << 20

// ErrNoData says that there is no such document, or no longer.
var ErrNoData = errors.New("no such document on the bus")

// PutData stores a document of a host as JSON and is the sha256 of that, which
// an event then names. Put it before the event.
func (b *Bus) PutData(ctx context.Context, uid, name string, value any) (digest string, err error) {
	if err := errors.Join(checkToken("uid", uid), checkToken("document", name)); err != nil {
		return "", err
	}
	if path := secretIn(value); path != "" {
		return "", fmt.Errorf("document %s of host %s holds a secret in %s, which must not be on the bus", name, uid, path)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode %s of host %s: %w", name, uid, err)
	}
	if len(data) > maxDocument {
		return "", fmt.Errorf("document %s of host %s has %d bytes: the bus takes %d", name, uid, len(data), maxDocument)
	}
	digest = digestOf(data)
	m := &nats.Msg{Subject: b.subj.data(uid, name), Data: data, Header: nats.Header{contentHeader: []string{"application/json"}}}
	if _, err := b.tryPublish(ctx, m); err != nil {
		return "", fmt.Errorf("store %s of host %s: %w", name, uid, err)
	}
	return digest, nil
}

// GetData reads the document with the digest into value; ErrNoData if the bus
// does not have it.
func (b *Bus) GetData(ctx context.Context, uid, name, digest string, value any) error {
	if err := errors.Join(checkToken("uid", uid), checkToken("document", name)); err != nil {
		return err
	}
	for upTo := uint64(0); ; {
		messages, err := b.read(ctx, StreamData, upTo, 1, b.subj.data(uid, name))
		if err != nil {
			return fmt.Errorf("read %s of host %s: %w", name, uid, err)
		}
		if len(messages) == 0 {
			return fmt.Errorf("%s of host %s with digest %q: %w", name, uid, digest, ErrNoData)
		}
		if m := messages[0]; digestOf(m.data) == digest {
			return json.Unmarshal(m.data, value)
		}
		upTo = messages[0].seq - 1
		if upTo == 0 {
			return fmt.Errorf("%s of host %s with digest %q: %w", name, uid, digest, ErrNoData)
		}
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
