package metalbus

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"
	"golang.org/x/term"
)

// console is where a long command tells how far it is. On a terminal there is
// a frame below the lines; elsewhere there are lines only. It is safe for
// concurrent use.
type console struct {
	out   io.Writer
	now   func() time.Time
	began time.Time
	style styles

	mu    sync.Mutex
	paint *painter // nil where out is no terminal
}

func (t Tool) newConsole() *console {
	c := &console{out: t.Env.Out, now: t.Env.Now, began: t.Env.Now(), style: newStyles(t.Env.Out)}
	kind, _ := t.Env.Lookup("TERM")
	if file, ok := t.Env.Out.(*os.File); ok && kind != "dumb" && term.IsTerminal(int(file.Fd())) {
		c.paint = &painter{out: file, size: func() (int, int) { return sizeOf(file) }}
	}
	return c
}

// sizeOf is the size of a terminal, or that of an ancient one if it does not say.
func sizeOf(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// live reports whether there is a frame.
func (c *console) live() bool { return c.paint != nil }

// say adds a line with the time that has passed.
func (c *console) say(format string, args ...any) {
	c.print(fmt.Sprintf("%7s  ", seconds(c.now().Sub(c.began))) + fmt.Sprintf(format, args...))
}

// print adds lines as they are.
func (c *console) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paint != nil {
		c.paint.print(text)
		return
	}
	_, _ = fmt.Fprintln(c.out, text) // whoever does not read it does not want it
}

// show shows the frame.
func (c *console) show(lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paint != nil {
		c.paint.paint(lines)
	}
}

// seconds is a short duration for people.
func seconds(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

// styles are the colours, none where out is no terminal or NO_COLOR is set.
type styles struct {
	title, dim, good, bad, busy lipgloss.Style
}

// newStyles uses a terminal's own sixteen colours, so that they fit its theme.
func newStyles(out io.Writer) styles {
	r := lipgloss.NewRenderer(out)
	colour := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return styles{title: r.NewStyle().Bold(true), dim: r.NewStyle().Faint(true), good: colour("2"), bad: colour("1"), busy: colour("6")}
}
