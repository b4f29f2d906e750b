package metalbus_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/services/metalbus"
)

// terminal understands what the painter tells it, and no more. It scrolls, and
// it wraps lines that are too long.
type terminal struct {
	t             *testing.T
	width, height int
	rows          []string // those on the screen, the last one with the cursor or above it
	x, y          int
	writes        int
}

func (m *terminal) size() (width, height int) { return m.width, m.height }

func (m *terminal) Write(p []byte) (int, error) {
	m.writes++
	text := string(p)
	for text != "" {
		text = m.eat(text)
	}
	return len(p), nil
}

func (m *terminal) eat(text string) string {
	if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
		end := strings.IndexAny(rest, "ABCDHJKhl")
		m.control(rest[:end], rest[end])
		return rest[end+1:]
	}
	switch r := []rune(text)[0]; r {
	case '\n':
		m.x = 0
		m.down()
		return text[1:]
	case '\r':
		m.x = 0
		return text[1:]
	default:
		m.put(r)
		return text[len(string(r)):]
	}
}

func (m *terminal) control(arg string, end byte) {
	switch {
	case end == 'A':
		var n int
		if _, err := fmt.Sscan(arg, &n); err != nil || n > m.y {
			m.t.Errorf("moved up by %q from row %d", arg, m.y)
		}
		m.y -= n
	case end == 'K':
		m.rows[m.y] = string([]rune(m.rows[m.y])[:min(m.x, len([]rune(m.rows[m.y])))])
	case end == 'J' && arg == "2":
		m.rows = []string{""}
		m.x, m.y = 0, 0
	case end == 'J':
		m.control("", 'K')
		m.rows = m.rows[:m.y+1]
	case end == 'H':
		m.x, m.y = 0, 0
	}
}

func (m *terminal) down() {
	if m.y++; m.y == len(m.rows) {
		m.rows = append(m.rows, "")
	}
	if len(m.rows) > m.height {
		m.rows = m.rows[1:]
		m.y--
	}
}

func (m *terminal) put(r rune) {
	if m.x == m.width {
		m.x = 0
		m.down()
	}
	row := []rune(m.rows[m.y])
	for len(row) <= m.x {
		row = append(row, ' ')
	}
	row[m.x] = r
	m.rows[m.y] = string(row)
	m.x++
}

func newTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	return &terminal{t: t, width: width, height: height, rows: []string{""}}
}

func TestWhatATerminalShows(t *testing.T) {
	tests := map[string]struct {
		do   func(s *metalbus.Screen, m *terminal)
		want []string
	}{
		"a frame goes over the last one": {
			func(s *metalbus.Screen, _ *terminal) { s.Paint("one", "two"); s.Paint("1", "2", "3") },
			[]string{"1", "2", "3", ""},
		},
		"a shorter frame leaves nothing": {
			func(s *metalbus.Screen, _ *terminal) { s.Paint("one", "two", "three"); s.Paint("1") },
			[]string{"1", ""},
		},
		"what is printed stays above": {
			func(s *metalbus.Screen, _ *terminal) {
				s.Paint("frame")
				s.Print("said")
				s.Paint("frame")
				s.Print("more\n")
				s.Paint("frame")
			},
			[]string{"said", "more", "frame", ""},
		},
		"long lines are cut and do not wrap": {
			func(s *metalbus.Screen, _ *terminal) {
				s.Paint("0123456789"+"0123456789", "next")
				s.Paint("same", "next")
			},
			[]string{"same", "next", ""},
		},
		"tall frames are cut and do not scroll": {
			func(s *metalbus.Screen, _ *terminal) {
				s.Print("above")
				s.Paint("1", "2", "3", "4", "5", "6")
				s.Paint("1", "2", "3", "4", "5", "6")
			},
			[]string{"1", "2", "3", ""},
		},
		"a terminal that gets smaller begins anew": {
			func(s *metalbus.Screen, m *terminal) {
				s.Print("gone")
				s.Paint("0123456789")
				m.width = 6
				s.Paint("0123456789")
			},
			[]string{"0123…", ""},
		},
		"a terminal that gets higher goes on": {
			func(s *metalbus.Screen, m *terminal) { s.Print("said"); s.Paint("one"); m.height = 9; s.Paint("two") },
			[]string{"said", "two", ""},
		},
		"what the user typed is painted over": {
			func(s *metalbus.Screen, m *terminal) {
				s.Paint("frame")
				_, _ = m.Write([]byte("^C"))
				s.Print("stopping")
			},
			[]string{"stopping", ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newTerminal(t, 12, 4)
			tc.do(metalbus.NewScreen(m, m.size), m)
			if diff := cmp.Diff(tc.want, m.rows); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFrameIsOneWrite(t *testing.T) {
	m := newTerminal(t, 80, 24)
	s := metalbus.NewScreen(m, m.size)
	s.Paint("one", "two")
	s.Paint("one", "two", "three")
	if m.writes != 2 {
		t.Errorf("%d writes, want 2: a terminal would show halves", m.writes)
	}
}
