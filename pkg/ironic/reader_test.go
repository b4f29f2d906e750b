package ironic_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic"
)

// rack answers listings and reads of nodes, page by page, as Ironic does.
type rack struct {
	*api
	mu     sync.Mutex
	nodes  []string // JSON by position; UUIDs are id(position)
	hidden int      // position of a node that no listing shows, -1 for none
	page   int
	// before is called before each answer.
	before func(r *http.Request)
}

func id(i int) string { return fmt.Sprintf("%08d-0000-0000-0000-000000000000", i) }

func newRack(t *testing.T, nodes, page int) *rack {
	t.Helper()
	r := &rack{api: newAPI(t), hidden: -1, page: page}
	for i := range nodes {
		r.nodes = append(r.nodes, nodeJSON(id(i), fmt.Sprint("lab~host-", i), "active"))
		r.on("GET /nodes/"+id(i), r.one(i))
		r.on("GET /nodes/lab~host-"+strconv.Itoa(i), r.one(i))
	}
	r.on("GET /nodes", r.list)
	return r
}

func (r *rack) one(i int) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if r.before != nil {
			r.before(req)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.nodes[i] == "" {
			respond(w, http.StatusNotFound, fault("Node "+id(i)+" could not be found."))
			return
		}
		respond(w, http.StatusOK, r.nodes[i])
	}
}

func (r *rack) list(w http.ResponseWriter, req *http.Request) {
	if r.before != nil {
		r.before(req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from := 0
	if marker := req.URL.Query().Get("marker"); marker != "" {
		i, err := strconv.Atoi(strings.TrimLeft(marker[:8], "0"))
		if err != nil || r.nodes[i] == "" {
			respond(w, http.StatusNotFound, fault("Node "+marker+" could not be found."))
			return
		}
		from = i + 1
	}
	var page []string
	last := -1
	for i := from; i < len(r.nodes) && len(page) < r.page; i++ {
		if r.nodes[i] != "" && i != r.hidden {
			page = append(page, r.nodes[i])
			last = i
		}
	}
	next := "null"
	if last >= 0 && last+1 < len(r.nodes) {
		next = fmt.Sprintf("%q", "http://ironic.invalid:6385/v1/nodes?limit=1000&fields=uuid&marker="+id(last))
	}
	respond(w, http.StatusOK, `{"nodes": [`+strings.Join(page, ",")+`], "next": `+next+`}`)
}

func (r *rack) set(i int, state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[i] = nodeJSON(id(i), fmt.Sprint("lab~host-", i), state)
}

func (r *rack) remove(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[i] = ""
}

// counts are how many listings and reads of single nodes there were.
func (r *rack) counts() (listings, singles int) {
	for _, q := range r.asked() {
		switch {
		case strings.Contains(q.Line, "marker="):
		case strings.HasPrefix(q.Line, "GET /v1/nodes?"):
			listings++
		default:
			singles++
		}
	}
	return listings, singles
}

func TestListingFollowsPagesOnOurEndpoint(t *testing.T) {
	r := newRack(t, 7, 3)
	f, err := r.client(nil).Fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Nodes) != 7 {
		t.Errorf("%d nodes, want 7", len(f.Nodes))
	}
	if n := len(r.asked()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestListingIsBegunAnewWhenItsMarkerGoes(t *testing.T) {
	r := newRack(t, 7, 3)
	var once sync.Once
	r.before = func(req *http.Request) {
		if req.URL.Query().Has("marker") {
			once.Do(func() { r.remove(2) })
		}
	}
	f, err := r.client(nil).Fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Nodes) != 6 {
		t.Errorf("%d nodes, want 6", len(f.Nodes))
	}
}

func TestListingGivesUpOnAFleetInFlight(t *testing.T) {
	r := newRack(t, 7, 3)
	r.on("GET /nodes", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Has("marker") {
			respond(w, http.StatusNotFound, fault("Node x could not be found."))
			return
		}
		r.list(w, req)
	})
	if _, err := r.client(nil).Fleet(t.Context()); !errors.Is(err, ironic.ErrBusy) {
		t.Errorf("error %v, want ErrBusy", err)
	}
}

// Versions ask for no field that they do not have: that would be an error 500.
func TestFieldsFollowTheVersion(t *testing.T) {
	for newest, want := range map[string][]string{
		"1.82": nil, "1.96": {"parent_node"}, "1.115": {"health", "parent_node"},
	} {
		r := newRack(t, 1, 10)
		r.newest = newest
		if _, err := r.client(nil).Fleet(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, fields, _ := strings.Cut(r.asked()[0].Line, "fields=")
		fields, _, _ = strings.Cut(strings.ReplaceAll(fields, "%2C", ","), "&")
		var got []string
		for f := range strings.SplitSeq(fields, ",") {
			if slices.Contains([]string{"disable_power_off", "health", "parent_node"}, f) {
				got = append(got, f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %s asks for %v, want %v", newest, got, want)
		}
	}
}

func TestFewReadsAreAnsweredAtOnce(t *testing.T) {
	r := newRack(t, 10, 1000)
	reader := ironic.NewReader(r.client(nil))
	for i := range 3 {
		if n, err := reader.Node(t.Context(), id(i)); err != nil || n.UUID != id(i) {
			t.Fatalf("node %q, error %v", n.UUID, err)
		}
	}
	if listings, singles := r.counts(); listings != 0 || singles != 3 {
		t.Errorf("%d listings and %d single reads, want 0 and 3", listings, singles)
	}
}

// B33: many reads at a time cost one listing for all.
func TestManyReadsShareAListing(t *testing.T) {
	const nodes = 300
	r := newRack(t, nodes, 1000)
	reader := ironic.NewReader(r.client(nil))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			want := id(i)
			ask := want
			if i%2 == 0 {
				ask = fmt.Sprint("lab~host-", i)
			}
			if n, err := reader.Node(t.Context(), ask); err != nil || n.UUID != want {
				t.Errorf("asked for %s: node %q, error %v", ask, n.UUID, err)
			}
		})
	}
	all.Wait()
	listings, singles := r.counts()
	if listings < 1 || listings+singles > nodes/5 {
		t.Errorf("%d listings and %d single reads for %d nodes, want a handful", listings, singles, nodes)
	}
}

// No answer is older than its question, be it of a listing: each caller changes
// its node and must see the change.
func TestAnswersAreNotOlderThanTheirQuestion(t *testing.T) {
	const nodes = 50
	r := newRack(t, nodes, 1000)
	reader := ironic.NewReader(r.client(nil))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			for round := range 5 {
				state := fmt.Sprint("state ", round)
				r.set(i, state)
				n, err := reader.Node(t.Context(), id(i))
				if err != nil {
					t.Error(err)
					return
				}
				if n.ProvisionState != state {
					t.Errorf("node %d: %q after it was %q", i, n.ProvisionState, state)
				}
			}
		})
	}
	all.Wait()
}

// What no listing shows may be there all the same: a node is missing only if a
// request for it alone says so.
func TestListingsAreNotTrustedAboutAbsence(t *testing.T) {
	const nodes = 60
	r := newRack(t, nodes, 1000)
	r.hidden = 7
	r.nodes[7] = `{"uuid": "` + id(7) + `", "parent_node": "` + id(7) + `", "provision_state": "active"}`
	r.nodes[9] = ""
	reader := ironic.NewReader(r.client(nil))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			_, err := reader.Node(t.Context(), id(i))
			want := map[int]error{7: ironic.ErrHidden, 9: ironic.ErrNoNode}[i]
			if !errors.Is(err, want) {
				t.Errorf("node %d: error %v, want %v", i, err, want)
			}
		})
	}
	all.Wait()
}

// At rest a fleet is read by a listing now and then, whatever the number of looks.
func TestRecentReadsAreServedByListings(t *testing.T) {
	const (
		nodes  = 200
		maxAge = 20 * time.Second
	)
	r := newRack(t, nodes, 1000)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	c, err := ironic.New(ironic.Config{Name: "lab", Endpoint: r.server.URL, Discovery: 24 * time.Hour}, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader := ironic.NewReader(c)
	if _, err := reader.Fleet(t.Context()); err != nil {
		t.Fatal(err)
	}
	const minutes = 10
	after := now().Add(-time.Hour)
	for range minutes * 60 { // each node is looked at once a minute
		ahead.Add(int64(time.Second))
		for range nodes / 60 {
			if _, err := reader.Recent(t.Context(), id(int(ahead.Load()/1e9)%nodes), after, maxAge); err != nil {
				t.Fatal(err)
			}
		}
	}
	listings, singles := r.counts()
	if listings > minutes*3+1 || singles > 0 {
		t.Errorf("%d listings and %d single reads in %d minutes, want three listings a minute", listings, singles, minutes)
	}
}

func TestRecentIsNeverOlderThanAsked(t *testing.T) {
	r := newRack(t, 3, 1000)
	reader := ironic.NewReader(r.client(nil))
	if _, err := reader.Fleet(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.set(1, "deploying")
	n, err := reader.Recent(t.Context(), id(1), time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if n.ProvisionState != "deploying" {
		t.Errorf("state %q of before the moment that was named", n.ProvisionState)
	}
	if _, err := reader.Recent(t.Context(), uuid2, time.Time{}, time.Hour); !errors.Is(err, ironic.ErrNoNode) {
		t.Errorf("error %v, want ErrNoNode", err)
	}
}
