package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// created is the wish that brings a host to the bus, in the state registering.
func created(uid string) lifecycle.Wish {
	return lifecycle.Wish{Fact: event.Created, Intent: event.Intent{
		Namespace: "metal", Name: "host-" + uid, UID: uid, Hash: "1",
		Spec: v1alpha1.BareMetalHostSpec{
			Online:         true,
			BootMACAddress: "02:00:00:00:00:01",
			BMC:            v1alpha1.BMCDetails{Address: "redfish://192.0.2.1/redfish/v1/Systems/1", CredentialsName: "bmc"},
		},
	}}
}

// changed is a wish like the host's own with another hash.
func changed(h lifecycle.Host, hash string) lifecycle.Wish {
	intent := h.Intent
	intent.Hash = hash
	return lifecycle.Wish{Fact: event.Changed, Intent: intent}
}

// again is another wish, for bustest.Append.
func again(h lifecycle.Host) lifecycle.Fact { return changed(h, "2") }

func observed(on bool) lifecycle.Observed {
	return lifecycle.Observed{What: event.PowerChanged, On: &on}
}

func write(name string) lifecycle.Write { return lifecycle.Write{Kind: event.Enroll, Name: name} }

func enrolled() lifecycle.Record {
	return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "lab", Node: "node-1", Address: "redfish://192.0.2.1/redfish/v1/Systems/1"}}
}

// raw is a connection of its own to look behind the bus, or to do it harm.
func raw(tb testing.TB, s nats.InProcessConnProvider) (*nats.Conn, jetstream.JetStream) {
	tb.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return nc, js
}

// pending is how many messages the service has in hand or delayed.
func pending(tb testing.TB, js jetstream.JetStream, service string) int {
	tb.Helper()
	c, err := js.Consumer(tb.Context(), bus.StreamHost, service+"-"+bustest.Cluster)
	if err != nil {
		tb.Fatal(err)
	}
	return c.CachedInfo().NumAckPending
}

func names(calls []bustest.Call) string {
	all := make([]string, len(calls))
	for i, c := range calls {
		all[i] = c.Name
	}
	return strings.Join(all, " ")
}
