package metalbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/backend/redfish"
)

// pretending is the name of the backend without hardware.
const pretending = "fixture"

func (t Tool) upCommand() *cobra.Command {
	var o siteOptions
	var data string
	cmd := &cobra.Command{
		Use: "up", Short: "Run a whole installation in this process", Args: arguments(0, 0, "no argument"),
		Long: "Run a whole installation in this process until interrupted: NATS, a Kubernetes API, a rack of simulated\n" +
			"BMCs, and the five services. Everything is kept in one folder; the next run there goes on where this one\n" +
			"ended, with the hosts as they were.\n\n" +
			"  metalbus up --hosts 50\n" +
			"  metalbus up --image http://images.example/live.iso   # hosts that boot a live ISO\n" +
			"  metalbus up --backend ironic --ironic-endpoint http://192.0.2.5:6385 --hosts 0   # your own hosts, by your Ironic",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			o.Data, err = newFolder(data)
			o.Grow = cmd.Flags().Changed("hosts")
			if err := errors.Join(err, o.validate(cmd.Flags())); err != nil {
				return usageError{err}
			}
			return t.up(cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	o.Rack.bind(fs, 50)
	fs.StringVar(&data, "data", t.defaultFolder(), "`folder` that keeps everything")
	fs.StringVarP(&o.Namespace, "namespace", "n", "default", "`namespace` of the hosts")
	fs.StringVar(&o.Image, "image", "", "`URL` of a live ISO that new hosts are to boot; empty leaves them available")
	fs.StringVar(&o.Backend, "backend", redfish.Name, "`backend` of the hosts: redfish, ironic, or fixture, which pretends and forgets at the end")
	o.bindIronic(fs)
	o.bindRamdisks(fs)
	fs.StringToIntVar((*map[string]int)(&o.Slots), "slots", nil, "`BACKEND=NUMBER` of long operations that a backend is asked for at once; the other hosts wait their turn")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` of a cluster to use instead of an API of our own")
	fs.StringVar(&o.Kubeapi, "kubeapi", "", "`program` that plays the Kubernetes API; looked for beside metalbus and on the PATH if empty")
	fs.StringVar(&o.Listen, "nats-listen", "", "loopback `address` at which programs of others may reach the bus, such as 127.0.0.1:4222; without a password")
	o.bindBus(fs)
	o.Frame.Bind(fs)
	fs.Lookup("health-address").DefValue, o.Frame.HealthAddress = "", ""
	return cmd
}

// bindIronic binds the flags of Ironics. Those that few need are left out of the help.
func (o *siteOptions) bindIronic(fs *pflag.FlagSet) {
	all := pflag.NewFlagSet(ironic.Name, pflag.ContinueOnError)
	o.Ironic.Bind(all)
	shown := []string{"ironic-endpoint", "ironics-file", "metal3-auth-root-dir"}
	all.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
	fs.AddFlagSet(all)
}

// bindRamdisks binds the flags of PreprovisioningImages. Some of them are told to
// Ironics as well, and are bound for those already.
func (o *siteOptions) bindRamdisks(fs *pflag.FlagSet) {
	all := pflag.NewFlagSet("ramdisks", pflag.ContinueOnError)
	o.Ramdisks.Bind(all)
	all.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "build-preprov-image" })
	fs.AddFlagSet(all)
}

// ramdisks reads what is told to Ironics as well, and checks the whole.
func (o *siteOptions) ramdisks(fs *pflag.FlagSet) error {
	if !o.Ramdisks.Enabled {
		return nil
	}
	r := &o.Ramdisks
	for name, where := range map[string]*string{"deploy-iso-url": &r.ISO.All, "deploy-kernel-url": &r.Kernel.All, "deploy-ramdisk-url": &r.Initrd.All} {
		*where = fs.Lookup(name).Value.String()
	}
	if o.Backend != ironic.Name {
		return fmt.Errorf("build-preprov-image: hosts of the %s backend boot no ramdisk; leave it out, or use --backend %s", o.Backend, ironic.Name)
	}
	return r.Validate()
}

// bindBus binds the flags of a NATS server of others.
func (o *siteOptions) bindBus(fs *pflag.FlagSet) {
	o.Bus.Bind(fs)
	fs.Lookup("nats-url").DefValue, o.Bus.URLs = "[]", nil
	fs.Lookup("nats-url").Usage = "NATS `servers` to use instead of one in this process; make the streams there with metalbus bus init"
	_ = fs.MarkHidden("state-dir") // it is in the data folder
	_ = fs.MarkHidden("nats-api-prefix")
}

// wholePaths are the paths of files as other processes can use them.
func (o *siteOptions) wholePaths() error {
	var errs []error
	for _, path := range []*string{
		&o.Kubeconfig, &o.Bus.Auth.CredsFile, &o.Bus.Auth.NKeyFile, &o.Bus.Auth.JWTFile, &o.Bus.Auth.UserFile, &o.Bus.Auth.PasswordFile,
		&o.Bus.TLS.CAFile, &o.Bus.TLS.CertFile, &o.Bus.TLS.KeyFile,
	} {
		if *path != "" {
			whole, err := filepath.Abs(*path)
			*path, errs = whole, append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o *siteOptions) validate(fs *pflag.FlagSet) error {
	if !fs.Changed("nats-url") {
		o.Bus.URLs = nil
	}
	errs := []error{o.wholePaths(), o.Rack.validate(), o.Slots.Validate(), o.Frame.Validate(), oneOf("backend", o.Backend, redfish.Name, ironic.Name, pretending)}
	if o.Backend == ironic.Name {
		errs = append(errs, o.Ironic.Validate())
	}
	errs = append(errs, o.ramdisks(fs))
	o.Bus.Name = name
	errs = append(errs, o.Bus.Validate())
	if o.Namespace == "" {
		errs = append(errs, errors.New("namespace is empty: name one"))
	}
	if o.Listen != "" && !loopback(o.Listen) {
		errs = append(errs, fmt.Errorf("nats-listen %q: want a loopback address, since no password is asked for; run a NATS server of your own for others", o.Listen))
	}
	return errors.Join(errs...)
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback()))
}

func (t Tool) up(ctx context.Context, o siteOptions) error {
	s := &site{siteOptions: o, tool: t, console: t.newConsole()}
	err := s.up(ctx)
	if ctx.Err() != nil {
		s.console.print("")
		s.console.say("stopping; Ctrl-C once more ends at once")
		err = nil
	}
	return errors.Join(err, s.close())
}

func (s *site) up(ctx context.Context) error {
	ctx, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.startServices(ctx)
	w, err := s.newWatcher(ctx, "metalbus up")
	if err != nil {
		return cause(ctx, err)
	}
	if err := w.untilSettled(ctx); err != nil {
		return err
	}
	w.below = s.ready(w.fleet.summary())
	if !s.console.live() {
		s.console.print(strings.Join(w.below, "\n"))
	}
	return w.show(ctx, func(summary) (bool, error) { return false, nil })
}

// ready says that all is as it was asked to be, and what to try.
func (s *site) ready(all summary) []string {
	lines := []string{"", s.console.style.good.Render(fmt.Sprintf("Ready after %s: %s.", seconds(s.console.now().Sub(s.console.began)), all.line())), ""}
	return append(append(lines, s.toTry()...), "", "Ctrl-C stops everything; the next run goes on from here.")
}

// toTry are three things to try.
func (s *site) toTry() []string {
	host := "NAMESPACE/NAME"
	if hosts := s.rack.sim.Hosts(); len(hosts) > 0 {
		host = s.Namespace + "/" + hosts[0].Name()
	}
	data := ""
	if s.Data != folder(s.tool.defaultFolder()) {
		data = " --data " + string(s.Data)
	}
	return []string{
		"  export KUBECONFIG=" + s.kubeconfig,
		"",
		"  kubectl get bmh -n " + s.Namespace + "    # the hosts, as Kubernetes shows them",
		"  " + s.tool.Program + " events -f" + data + "    # every step of every host, as it happens",
		"  " + s.tool.Program + " host show " + host + data + "    # all that is known of one",
	}
}
