package programs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// every is how many packages pass between two lines of progress.
const every = 100

// A counter reads what go build -v says, a line for each package that it
// compiles, and tells out how many there were. All else is kept: it says why
// a build failed.
type counter struct {
	title string
	total int
	out   io.Writer

	rest   []byte
	done   int
	others []string
}

func (c *counter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		line, after, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		c.rest = after
		c.line(string(line))
	}
}

func (c *counter) line(line string) {
	if !isPackage(line) {
		c.others = append(c.others, line)
		return
	}
	c.done++
	if c.done%every == 0 {
		fmt.Fprintf(c.out, "%s: compiled %d packages of at most %d\n", c.title, c.done, c.total)
	}
}

func (c *counter) end() {
	if c.done >= every {
		fmt.Fprintf(c.out, "%s: compiled %d packages, the rest was in the cache\n", c.title, c.done)
	}
}

func (c *counter) complaints() string {
	return strings.TrimSpace(strings.Join(append(c.others, string(c.rest)), "\n"))
}

// isPackage tells an import path from a message of go or of the compiler: they
// have spaces, or are headed "# package".
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#")
}
