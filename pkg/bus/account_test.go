package bus_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
)

// accounts lets a service into the bus' account through the subjects that it
// needs and no others: its own section, wakes, acknowledgements and JetStream's
// API, which has another name on its side.
const accounts = `
accounts {
  BUS {
    jetstream: enabled
    users: [{user: admin, password: admin}]
    exports: [
      {service: "$JS.API.>", response_type: stream}
      {service: "$JS.ACK.>"}
      {service: "metal.*.host.*.registration"}
      {service: "metal.*.wake.>"}
      {service: "metal.*.dlq.registrar.*"}
    ]
  }
  REGISTRAR {
    users: [{user: registrar, password: registrar}]
    imports: [
      {service: {account: BUS, subject: "$JS.API.>"}, to: "BUS.API.>"}
      {service: {account: BUS, subject: "$JS.ACK.>"}}
      {service: {account: BUS, subject: "metal.*.host.*.registration"}}
      {service: {account: BUS, subject: "metal.*.wake.>"}}
      {service: {account: BUS, subject: "metal.*.dlq.registrar.*"}}
    ]
  }
}`

func TestAServiceInAnAccountOfItsOwn(t *testing.T) {
	conf := file(t, []byte(accounts))
	url := guarded(t, func(o *server.Options) {
		parsed, err := server.ProcessConfigFile(conf)
		if err != nil {
			t.Fatal(err)
		}
		o.Accounts, o.Users = parsed.Accounts, parsed.Users
	})
	connect := func(user, prefix string) *bus.Bus {
		return bustest.Connect(t, bus.Config{
			URLs: []string{url}, Cluster: bustest.Cluster, Name: user, Timing: bustest.Timing(), APIPrefix: prefix,
			Auth: bus.Auth{UserFile: file(t, []byte(user)), PasswordFile: file(t, []byte(user))},
		})
	}
	admin, registrar := connect("admin", ""), connect("registrar", "BUS.API")
	if _, err := admin.Init(t.Context(), small()); err != nil {
		t.Fatal(err)
	}
	w := bustest.Registrar(enrollIn("create"))
	bustest.Serve(t, registrar, w)
	bustest.Append(t, admin, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, admin, "u1", event.SectionRegistration, "enroll.succeeded")

	h := bustest.Load(t, registrar, "u1")
	if _, err := registrar.Append(t.Context(), h, observed(true)); err == nil {
		t.Error("the service appended to a section of another")
	}
	bustest.Clean(t, admin)
}
