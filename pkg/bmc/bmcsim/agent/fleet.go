package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// Config says where a fleet answers and how it behaves.
type Config struct {
	// Address is where Ironic reaches the fleet's Handler, without a slash at the
	// end. Required.
	Address string
	// Client speaks to Ironic and to image servers; a plain one with a limit of a
	// minute if nil.
	Client *http.Client
	// Heartbeat is the time between beats; 30 s if zero. After each command an
	// agent beats at once.
	Heartbeat time.Duration
	// Step is how long a step takes; 200 ms if zero. A conductor does not expect one
	// that is done before it was told that it has begun.
	Step time.Duration
}

// Version is the agent's version that a fleet plays.
const Version = "13.0.0"

const (
	defaultHeartbeat = 30 * time.Second
	defaultTimeout   = time.Minute
	defaultStep      = 200 * time.Millisecond
	// maxISO bounds how much of a boot image is searched for parameters.
	maxISO = 64 << 20
)

// Faults are misbehaviours of the agent on one machine.
type Faults struct {
	FailInspect string        `json:"failInspect,omitempty"` // the error in its inspection report
	FailClean   string        `json:"failClean,omitempty"`   // name of a clean step that fails
	FailDeploy  string        `json:"failDeploy,omitempty"`  // name of a deploy step that fails
	FailService string        `json:"failService,omitempty"` // name of a service step that fails
	Step        time.Duration `json:"step,omitempty"`        // how long each step takes, in place of the fleet's
}

// Disk is what agents did to a machine's disk. It outlives them.
type Disk struct {
	Image       string `json:"image,omitempty"`    // address of the image on it
	Checksum    string `json:"checksum,omitempty"` // of that image
	ConfigDrive []byte `json:"configDrive,omitempty"`
	Writes      int    `json:"writes"`
	Erases      int    `json:"erases"`
}

// Fleet is the agents of a simulator. Its methods may be called at the same time
// from anywhere.
type Fleet struct {
	cfg Config

	mu     sync.Mutex
	places map[string]*place // by host id
}

// place is what belongs to a machine, whether an agent runs on it or not.
type place struct {
	faults Faults
	disk   Disk
	agent  *agent // nil while none runs
}

// New makes a fleet without agents.
func New(cfg Config) (*Fleet, error) {
	if cfg.Address == "" {
		return nil, errors.New("agent: Config.Address is empty: give the address at which Ironic reaches the fleet")
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: defaultTimeout}
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = defaultHeartbeat
	}
	if cfg.Step == 0 {
		cfg.Step = defaultStep
	}
	return &Fleet{cfg: cfg, places: map[string]*place{}}, nil
}

// place gives what belongs to a machine. The caller holds f.mu.
func (f *Fleet) place(host string) *place {
	p := f.places[host]
	if p == nil {
		p = &place{}
		f.places[host] = p
	}
	return p
}

// Disk tells what is on a machine's disk.
func (f *Fleet) Disk(h *bmcsim.Host) Disk {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.place(h.ID()).disk
}

// SetFaults puts misbehaviours of the agent on a machine in force, in place of all
// earlier ones.
func (f *Fleet) SetFaults(h *bmcsim.Host, faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.place(h.ID()).faults = faults
}

// Faults are the misbehaviours in force on a machine.
func (f *Fleet) Faults(h *bmcsim.Host) Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.place(h.ID()).faults
}

// Boot runs an agent if that is what the machine has booted. It is a
// bmcsim.BootFunc.
func (f *Fleet) Boot(ctx context.Context, b *bmcsim.Boot) {
	if b.Running.Kind != bmcsim.RunsISO {
		return
	}
	params, err := f.Parameters(ctx, b.Running.Image)
	if err != nil || params["ipa-api-url"] == "" {
		return // no agent's image: some other system runs
	}
	a := newAgent(f, b, params)
	f.mu.Lock()
	f.place(b.Host.ID()).agent = a
	f.mu.Unlock()
	b.Becomes(bmcsim.Running{Kind: bmcsim.RunsAgent, Image: b.Running.Image})
	a.run(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.place(b.Host.ID()); p.agent == a {
		p.agent = nil
	}
}

// parameter is how a boot image names what its agent is to know. Files in an ISO
// are stored as they are, so that a plain search finds them.
var parameter = regexp.MustCompile(`(ipa-[a-z-]+)=([^\s\x00"]+)`)

// Parameters are an agent's parameters in a boot image, by their names on the
// kernel's command line. It fetches the image as a BMC would.
func (f *Fleet) Parameters(ctx context.Context, image string) (map[string]string, error) {
	body, err := f.download(ctx, image)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxISO))
	if err != nil {
		return nil, err
	}
	params := map[string]string{}
	for _, p := range parameter.FindAllSubmatch(b, -1) {
		params[string(p[1])] = string(p[2])
	}
	return params, nil
}

func (f *Fleet) download(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := f.cfg.Client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // nothing of it is wanted
		return nil, errors.New("download of " + address + ": " + resp.Status)
	}
	return resp.Body, nil
}

// Handler answers for all agents, below /agent/{host id}. Where there is no agent
// the connection is closed: nobody is at that address.
func (f *Fleet) Handler() http.Handler {
	mux := http.NewServeMux()
	with := func(do func(*agent, http.ResponseWriter, *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			a := f.place(r.PathValue("host")).agent
			f.mu.Unlock()
			if a == nil {
				panic(http.ErrAbortHandler)
			}
			do(a, w, r)
		}
	}
	mux.HandleFunc("GET /agent/{host}/v1/status", with((*agent).status))
	mux.HandleFunc("GET /agent/{host}/v1/commands", with((*agent).list))
	mux.HandleFunc("POST /agent/{host}/v1/commands", with((*agent).command))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = strings.TrimRight(r.URL.Path, "/")
		mux.ServeHTTP(w, r)
	})
}
