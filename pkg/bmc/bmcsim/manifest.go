package bmcsim

import (
	"bytes"
	"fmt"
	"net/url"

	"sigs.k8s.io/yaml"
)

// ManifestOptions say what the manifests of hosts are to hold.
type ManifestOptions struct {
	// BaseURL is where the simulator answers, such as http://127.0.0.1:8000.
	// Required; over https the manifests switch certificate verification off, since
	// a simulator has no certificate that anybody knows.
	BaseURL string
	// Namespace of the objects; left out if empty.
	Namespace string
	// Image, if set, is provisioned as a live ISO.
	Image string
	// Offline leaves the hosts powered off: spec.online is false.
	Offline bool
}

// Manifests gives a Secret and a BareMetalHost for each host, ready to apply.
func (s *Sim) Manifests(o ManifestOptions) ([]byte, error) {
	return Manifests(s.Hosts(), o)
}

// Manifests gives a Secret and a BareMetalHost for each of the hosts, ready to apply.
func Manifests(hosts []*Host, o ManifestOptions) ([]byte, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("bmcsim: manifests: the address %q is not like http://127.0.0.1:8000", o.BaseURL)
	}
	var out bytes.Buffer
	for _, h := range hosts {
		for _, doc := range []obj{h.secret(o), h.bareMetalHost(o, u)} {
			b, err := yaml.Marshal(doc)
			if err != nil {
				return nil, fmt.Errorf("bmcsim: manifests: %w", err)
			}
			out.WriteString("---\n")
			out.Write(b)
		}
	}
	return out.Bytes(), nil
}

func (h *Host) secretName() string { return h.name + "-bmc" }

func metadata(name string, o ManifestOptions) obj {
	m := obj{"name": name}
	if o.Namespace != "" {
		m["namespace"] = o.Namespace
	}
	return m
}

func (h *Host) secret(o ManifestOptions) obj {
	user, password := h.Credentials()
	m := metadata(h.secretName(), o)
	m["labels"] = obj{"environment.metal3.io": "baremetal"}
	return obj{"apiVersion": "v1", "kind": "Secret", "metadata": m, "type": "Opaque", "stringData": obj{"username": user, "password": password}}
}

func (h *Host) bareMetalHost(o ManifestOptions, u *url.URL) obj {
	bmc := obj{"address": "redfish-virtualmedia+" + u.Scheme + "://" + u.Host + h.SystemPath(), "credentialsName": h.secretName()}
	if u.Scheme == "https" {
		bmc["disableCertificateVerification"] = true
	}
	spec := obj{"online": !o.Offline, "bmc": bmc, "bootMACAddress": h.MACs()[0]}
	if o.Image != "" {
		spec["image"] = obj{"url": o.Image, "format": "live-iso"}
	}
	return obj{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": metadata(h.name, o), "spec": spec}
}
