package bus

import (
	"cmp"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
)

const (
	// metaEpoch is the key of METAL_HOST's metadata that identifies the log.
	metaEpoch = "metal.epoch"
	// maxPerSection is how many events of one section the log keeps.
	maxPerSection = 64
	// maxAckPending is how many messages of a consumer may be in hand or
	// delayed; the server's default would stop everything at a thousand
	// hosts that wait.
	maxAckPending = 100_000
	// maxWakes is how often a wake is handed out at most.
	maxWakes = 20

	day       = 24 * time.Hour
	unlimited = -1
)

// streams are the streams of the bus. The share of each in the bytes that the
// administrator grants is in percent.
func streams(o InitOptions) []jetstream.StreamConfig {
	host := jetstream.StreamConfig{
		Name: StreamHost, Subjects: []string{"metal.*.host.*.*"},
		Description:       "metalbus: the log of all hosts, and their state. Appended to by compare-and-swap only",
		MaxMsgsPerSubject: maxPerSection, MaxBytes: o.share(52), MaxMsgSize: maxData + 16<<10,
		Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, DenyDelete: true,
		Metadata: map[string]string{metaEpoch: o.epoch},
	}
	data := jetstream.StreamConfig{
		Name: StreamData, Subjects: []string{"metal.*.data.*.*"},
		Description:       "metalbus: documents that events name by their digest",
		MaxMsgsPerSubject: 2, MaxBytes: o.share(8), MaxMsgSize: maxDocument + 16<<10, Discard: jetstream.DiscardNew,
	}
	wake := jetstream.StreamConfig{
		Name: StreamWake, Subjects: []string{"metal.*.wake.*.*", "metal.*.tick.*"},
		Description:       "metalbus: nudges to look at a host again, and ticks",
		MaxMsgsPerSubject: 1, MaxAge: day, MaxBytes: o.share(1), Discard: jetstream.DiscardOld,
		AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true,
	}
	dead := jetstream.StreamConfig{
		Name: StreamDead, Subjects: []string{"metal.*.dlq.*.*"},
		Description:       "metalbus: messages that no service could handle",
		MaxMsgsPerSubject: 16, MaxAge: 90 * day, MaxBytes: o.share(3), Discard: jetstream.DiscardNew,
	}
	advisory := jetstream.StreamConfig{
		Name: StreamAdvisory,
		Subjects: []string{
			"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>", "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>",
			"$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST.>", "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.>",
		},
		Description: "metalbus: what the server says about consumers and streams",
		MaxAge:      7 * day, MaxBytes: o.share(1), Discard: jetstream.DiscardOld,
	}
	history := jetstream.StreamConfig{
		Name: StreamHistory, Sources: []*jetstream.StreamSource{{Name: StreamHost}},
		Description: "metalbus: a long copy of the log, for people; no decision reads it",
		MaxAge:      365 * day, MaxBytes: o.share(35), Discard: jetstream.DiscardOld,
	}
	all := []jetstream.StreamConfig{host, data, wake, dead, advisory, history}
	for i := range all {
		all[i].Replicas, all[i].AllowDirect = o.Replicas, true
		all[i].MaxMsgsPerSubject = cmp.Or(all[i].MaxMsgsPerSubject, unlimited)
		all[i].MaxMsgSize = cmp.Or(all[i].MaxMsgSize, unlimited)
		if o.Memory {
			all[i].Storage = jetstream.MemoryStorage
		} else {
			all[i].Compression = jetstream.S2Compression
		}
	}
	return all
}

// hostConsumer is a service's consumer of all events. Where it begins makes
// it harmless to lose it: every host is looked at once more.
func (b *Bus) hostConsumer(service string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: b.subj.consumer(service), FilterSubject: b.subj.allHosts(),
		Description:   "metalbus: " + service,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: b.cfg.Timing.AckWait, MaxDeliver: -1, MaxAckPending: maxAckPending,
	}
}

func (b *Bus) wakeConsumer(service string) jetstream.ConsumerConfig {
	c := b.hostConsumer(service)
	c.FilterSubject, c.DeliverPolicy, c.MaxDeliver = b.subj.wakes(service), jetstream.DeliverAllPolicy, maxWakes
	return c
}

// Services are the services that hear the bus, in the order of their sections.
func Services() []string {
	names := make([]string, 0, len(event.Sections()))
	for _, s := range event.Sections() {
		names = append(names, s.Writer())
	}
	return names
}

// tick is a repeating nudge to one replica of a service.
type tick struct {
	service, name string
	every         time.Duration
}

func (b *Bus) ticks() []tick {
	t := b.cfg.Timing
	var all []tick
	for _, s := range Services() {
		all = append(all, tick{s, TickResync, t.Resync})
	}
	return slices.Concat(all, []tick{{event.SectionPower.Writer(), TickPower, t.Power}})
}
