package bmcsim

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// expandQuery is the value of $expand: what to expand, and how deep.
var expandQuery = regexp.MustCompile(`^([.*~])(?:\(\$levels=([0-9]+)\))?$`)

// expand puts the resources that an answer links to in place of the links, if that
// was asked for and the BMC can do it. One that cannot answers as if it had not
// been asked.
func (c *call) expand(a answer) answer {
	body, isObj := a.body.(obj)
	want := c.r.URL.Query().Get("$expand")
	if want == "" || !isObj || c.host == nil || c.host.shape.expand.levels == 0 {
		return a
	}
	can := c.host.shape.expand
	m := expandQuery.FindStringSubmatch(want)
	if m == nil || m[1] != "." && !can.all {
		return refuse(http.StatusBadRequest, "QueryNotSupportedOnResource", "Querying is not supported on the requested resource in this way: $expand="+want)
	}
	levels := 1
	if m[2] != "" {
		levels, _ = strconv.Atoi(m[2])
	}
	if levels > can.levels {
		return refuse(http.StatusBadRequest, "QueryParameterOutOfRange", "The value of $levels is out of range.", strconv.Itoa(levels))
	}
	c.expandIn(body, levels)
	return a
}

// expandIn expands the links of one resource that are not under Links.
func (c *call) expandIn(body obj, levels int) {
	if levels == 0 {
		return
	}
	for key, v := range body {
		if key == "Links" {
			continue
		}
		switch v := v.(type) {
		case link:
			if x := c.fetch(v, levels-1); x != nil {
				body[key] = x
			}
		case []link:
			body[key] = c.fetchAll(v, levels-1)
		}
	}
}

func (c *call) fetchAll(links []link, levels int) []any {
	out := make([]any, 0, len(links))
	for _, l := range links {
		if x := c.fetch(l, levels); x != nil {
			out = append(out, x)
			continue
		}
		out = append(out, l)
	}
	return out
}

// fetch is the resource behind a link, expanded in its turn; nil if it is not the
// caller's to see or no resource.
func (c *call) fetch(l link, levels int) obj {
	path := strings.Trim(strings.TrimPrefix(l.ID, root), "/")
	parts := strings.Split(path, "/")
	node, ids := c.sim.routes.match(parts)
	if node == nil || node.do[http.MethodGet] == nil || node.kind == streamPath {
		return nil
	}
	sub := &call{sim: c.sim, host: c.host, alone: c.alone, path: path, ids: ids, key: c.key, known: true, r: c.r}
	if sub.whose(parts) || !sub.allowed(Faults{}) {
		return nil
	}
	body, _ := node.do[http.MethodGet](sub).body.(obj)
	if body != nil {
		sub.expandIn(body, levels)
	}
	return body
}
