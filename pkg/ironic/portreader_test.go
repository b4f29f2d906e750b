package ironic_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/metalbus/metalbus/pkg/ironic"
)

// shelf answers questions about ports, page by page, as Ironic does. Each node has
// one port.
type shelf struct {
	*api
	mu    sync.Mutex
	macs  []string // by the position of their node
	page  int
	whole int // listings of all
}

func mac(i int) string { return fmt.Sprintf("00:00:5e:00:%02x:%02x", i>>8, i&0xff) }

func newShelf(t *testing.T, nodes, page int) *shelf {
	t.Helper()
	s := &shelf{api: newAPI(t), page: page}
	for i := range nodes {
		s.macs = append(s.macs, mac(i))
	}
	s.on("GET /ports", s.list)
	return s
}

func (s *shelf) list(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := req.URL.Query()
	from := 0
	if m := q.Get("marker"); m != "" {
		if _, err := fmt.Sscanf(m, "port-%d", &from); err != nil {
			respond(w, http.StatusNotFound, fault("Port "+m+" could not be found."))
			return
		}
		from++
	}
	var rows []string
	next := ""
	for i := from; i < len(s.macs); i++ {
		if node := q.Get("node_uuid"); (node != "" && node != id(i)) || (q.Get("address") != "" && q.Get("address") != s.macs[i]) {
			continue
		}
		if len(rows) == s.page {
			next = fmt.Sprintf(`, "next": "http://192.0.2.1:6385/v1/ports?limit=%d&fields=%s&marker=port-%d"`, s.page, q.Get("fields"), i-1)
			break
		}
		rows = append(rows, fmt.Sprintf(`{"uuid": "port-%d", "node_uuid": "%s", "address": "%s"}`, i, id(i), s.macs[i]))
	}
	if from == 0 && !q.Has("node_uuid") && !q.Has("address") {
		s.whole++
	}
	respond(w, http.StatusOK, `{"ports": [`+strings.Join(rows, ", ")+`]`+next+`}`)
}

func TestAFewPortsAreAskedForAlone(t *testing.T) {
	s := newShelf(t, 10, 1000)
	r := ironic.NewReader(s.client(nil))
	if p, ok, err := r.PortOf(t.Context(), strings.ToUpper(mac(3))); err != nil || !ok || p.Node != id(3) {
		t.Errorf("%+v, %v, %v", p, ok, err)
	}
	if p, ok, err := r.PortOf(t.Context(), mac(77)); err != nil || ok {
		t.Errorf("a port that there is not: %+v, %v", p, err)
	}
	if ports, err := r.Ports(t.Context(), id(4)); err != nil || len(ports) != 1 || ports[0].MAC != mac(4) {
		t.Errorf("%+v, %v", ports, err)
	}
	if n := len(s.asked()); n != 3 || s.whole != 0 {
		t.Errorf("%d requests, %d listings of all", n, s.whole)
	}
}

// Many questions at a time cost a few listings, which go over all pages.
func TestManyQuestionsAboutPortsShareAListing(t *testing.T) {
	const nodes = 300
	s := newShelf(t, nodes, 70)
	r := ironic.NewReader(s.client(nil))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			if ports, err := r.Ports(t.Context(), id(i)); err != nil || len(ports) != 1 || ports[0].MAC != mac(i) {
				t.Errorf("node %d: %+v, %v", i, ports, err)
			}
			if p, ok, err := r.PortOf(t.Context(), mac(i)); err != nil || !ok || p.Node != id(i) {
				t.Errorf("port %d: %+v, %v, %v", i, p, ok, err)
			}
		})
	}
	all.Wait()
	if n := len(s.asked()); s.whole == 0 || n > nodes/3 {
		t.Errorf("%d requests, %d listings of all, for %d questions", n, s.whole, 2*nodes)
	}
}

// No answer is older than its question.
func TestPortsAreNotOlderThanTheirQuestion(t *testing.T) {
	const nodes = 40
	s := newShelf(t, nodes, 1000)
	r := ironic.NewReader(s.client(nil))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			for round := range 5 {
				want := fmt.Sprintf("02:00:00:00:%02x:%02x", i, round)
				s.mu.Lock()
				s.macs[i] = want
				s.mu.Unlock()
				if ports, err := r.Ports(t.Context(), id(i)); err != nil || len(ports) != 1 || ports[0].MAC != want {
					t.Errorf("node %d: %+v, %v, want %s", i, ports, err, want)
				}
			}
		})
	}
	all.Wait()
}

// An Ironic that answers nothing knows of no ports, which is not that there are none.
func TestAListingOfPortsThatIsNone(t *testing.T) {
	s := newShelf(t, 1, 1000)
	s.on("GET /ports", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, `{}`) })
	r := ironic.NewReader(s.client(nil))
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if _, err := r.Ports(t.Context(), id(0)); !errors.Is(err, ironic.ErrNotReady) {
				t.Errorf("error %v, want ErrNotReady", err)
			}
		})
	}
	all.Wait()
}
