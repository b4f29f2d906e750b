package bus

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/nats-io/nats.go"
)

// CloudEvents in binary mode over NATS, after the protocol binding 1.0.2: each
// attribute is a header "ce-<name>" with its value percent-encoded, the data is
// the payload. NATS header names are case-sensitive.
const (
	attrPrefix    = "ce-"
	attrVersion   = attrPrefix + "specversion"
	contentHeader = "content-type"
)

// writeEvent fills the message from the event.
func writeEvent(ctx context.Context, e *cloudevents.Event, m *nats.Msg) error {
	w := eventWriter{m}
	_, err := binding.Write(binding.WithForceBinary(ctx), (*binding.EventMessage)(e), w, w)
	return err
}

// readEvent is the event in a message.
func readEvent(ctx context.Context, h nats.Header, data []byte) (*cloudevents.Event, error) {
	return binding.ToEvent(ctx, newEventReader(h, data))
}

// eventWriter implements the SDK's writers on a NATS message.
type eventWriter struct{ m *nats.Msg }

func (w eventWriter) Start(context.Context) error { return nil }
func (w eventWriter) End(context.Context) error   { return nil }

func (w eventWriter) SetData(r io.Reader) error {
	data, err := io.ReadAll(r)
	w.m.Data = data
	return err
}

func (w eventWriter) SetAttribute(a spec.Attribute, value any) error {
	if a.Kind() == spec.DataContentType {
		return w.set(contentHeader, value, func(s string) string { return s })
	}
	return w.set(attrPrefix+a.Name(), value, escape)
}

func (w eventWriter) SetExtension(name string, value any) error {
	return w.set(attrPrefix+name, value, escape)
}

func (w eventWriter) SetStructuredEvent(_ context.Context, f format.Format, r io.Reader) error {
	w.m.Header[contentHeader] = []string{f.MediaType()}
	return w.SetData(r)
}

func (w eventWriter) set(key string, value any, encode func(string) string) error {
	if value == nil {
		delete(w.m.Header, key)
		return nil
	}
	text, err := types.Format(value)
	if err != nil {
		return err
	}
	w.m.Header[key] = []string{encode(text)}
	return nil
}

// eventReader implements the SDK's message on what was received from NATS.
type eventReader struct {
	header  nats.Header
	data    []byte
	version spec.Version
}

var (
	_ binding.Message               = eventReader{}
	_ binding.MessageMetadataReader = eventReader{}
)

func newEventReader(h nats.Header, data []byte) eventReader {
	return eventReader{header: h, data: data, version: spec.WithPrefix(attrPrefix).Version(header(h, attrVersion))}
}

func (r eventReader) ReadEncoding() binding.Encoding {
	switch {
	case r.version != nil:
		return binding.EncodingBinary
	case format.IsFormat(header(r.header, contentHeader)):
		return binding.EncodingStructured
	default:
		return binding.EncodingUnknown
	}
}

func (r eventReader) ReadStructured(ctx context.Context, w binding.StructuredWriter) error {
	f := format.Lookup(header(r.header, contentHeader))
	if f == nil {
		return binding.ErrNotStructured
	}
	return w.SetStructuredEvent(ctx, f, bytes.NewReader(r.data))
}

func (r eventReader) ReadBinary(_ context.Context, w binding.BinaryWriter) error {
	if r.version == nil {
		return binding.ErrNotBinary
	}
	for key := range r.header {
		if err := r.readHeader(key, w); err != nil {
			return err
		}
	}
	if len(r.data) == 0 {
		return nil
	}
	return w.SetData(bytes.NewReader(r.data))
}

func (r eventReader) readHeader(key string, w binding.BinaryWriter) error {
	if key == contentHeader {
		return w.SetAttribute(r.version.AttributeFromKind(spec.DataContentType), header(r.header, key))
	}
	name, ok := strings.CutPrefix(key, attrPrefix)
	if !ok {
		return nil
	}
	value := unescape(header(r.header, key))
	if a := r.version.Attribute(key); a != nil {
		return w.SetAttribute(a, value)
	}
	return w.SetExtension(name, value)
}

func (r eventReader) GetAttribute(k spec.Kind) (spec.Attribute, any) {
	a := r.version.AttributeFromKind(k)
	switch {
	case a == nil:
		return nil, nil
	case k == spec.DataContentType:
		return a, header(r.header, contentHeader)
	default:
		return a, unescape(header(r.header, a.PrefixedName()))
	}
}

func (r eventReader) GetExtension(name string) any {
	return unescape(header(r.header, attrPrefix+name))
}

func (r eventReader) Finish(error) error { return nil }

// attr is the decoded attribute or extension of a message, "" if it has none.
func attr(h nats.Header, name string) string { return unescape(header(h, attrPrefix+name)) }

// header is nats.Header.Get without its allocations.
func header(h nats.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// escape percent-encodes what a header cannot carry: space, quote, percent,
// and all that is not printable ASCII.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	if !slices.ContainsFunc([]byte(s), unsafeInHeader) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if unsafeInHeader(c) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unsafeInHeader(c byte) bool { return c <= ' ' || c == '"' || c == '%' || c >= 0x7f }

// unescape undoes escape. A percent sign that encodes nothing stays as it is.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo)) //nolint:gosec // two half bytes
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unhex(c byte) int {
	return strings.IndexByte("0123456789abcdef", lower(c))
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
