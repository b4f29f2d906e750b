package metalbus

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

const (
	imagePath = "/images/live.iso"
	maxBody   = 64 << 10
)

// handler answers for the BMCs, and besides for whoever stands before the rack:
//
//	GET  /sim/hosts                   all machines as they are
//	GET  /sim/hosts/{name}            one of them
//	GET  /sim/hosts/{name}/commands   what its BMC was told to do
//	PUT  /sim/hosts/{name}/faults     misbehave from now on; {} heals
//	GET  /sim/requests                counts of requests to all BMCs
//	GET  /sim/manifests?namespace=&image=   hosts and Secrets to apply
func (r *rack) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", r.sim.Handler())
	mux.HandleFunc("GET "+imagePath, serveImage)
	mux.HandleFunc("GET /sim/hosts", func(w http.ResponseWriter, _ *http.Request) { reply(w, r.sim.Views()) })
	mux.HandleFunc("GET /sim/requests", func(w http.ResponseWriter, _ *http.Request) { reply(w, r.sim.Requests()) })
	mux.HandleFunc("GET /sim/manifests", r.serveManifests)
	mux.HandleFunc("GET /sim/hosts/{name}", r.onHost(func(h *bmcsim.Host, w http.ResponseWriter, _ *http.Request) { reply(w, h.View()) }))
	mux.HandleFunc("GET /sim/hosts/{name}/commands", r.onHost(func(h *bmcsim.Host, w http.ResponseWriter, _ *http.Request) { reply(w, h.Commands()) }))
	mux.HandleFunc("PUT /sim/hosts/{name}/faults", r.onHost(setFaults))
	return mux
}

func (r *rack) onHost(do func(*bmcsim.Host, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		h := r.sim.Host(req.PathValue("name"))
		if h == nil {
			http.Error(w, "no host of that name: see /sim/hosts", http.StatusNotFound)
			return
		}
		do(h, w, req)
	}
}

func setFaults(h *bmcsim.Host, w http.ResponseWriter, req *http.Request) {
	var f bmcsim.Faults
	in := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxBody))
	in.DisallowUnknownFields()
	if err := in.Decode(&f); err != nil {
		http.Error(w, "faults: "+err.Error(), http.StatusBadRequest)
		return
	}
	h.SetFaults(f)
	reply(w, h.View())
}

func (r *rack) serveManifests(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	text, err := r.manifests(0, q.Get("namespace"), q.Get("image"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(text) //nolint:gosec // YAML; and a client that went away is no concern of ours
}

// serveImage is an image for machines that only pretend to boot it.
func serveImage(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, req, "", time.Time{}, strings.NewReader("An image of a simulated machine: there is nothing in it.\n"))
}

func reply(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // as above
}
