package metalbus

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// What a terminal is told.
const (
	holdPaint  = "\x1b[?2026h" // show nothing until the frame is whole
	showPaint  = "\x1b[?2026l"
	clearBelow = "\x1b[J"
	clearLine  = "\x1b[K" // from the cursor on
	clearAll   = "\x1b[H\x1b[2J"
)

// painter keeps some lines at the bottom of a terminal up to date. A frame is
// one write that goes over the last one, so nothing flickers. Lines are cut to
// the width, and frames to the height, as they are at that moment.
type painter struct {
	out  io.Writer
	size func() (width, height int)

	shown         int // lines on the screen
	width, height int
}

// paint shows a frame in place of the last one.
func (p *painter) paint(lines []string) {
	var frame bytes.Buffer
	frame.WriteString(holdPaint)
	p.goBack(&frame)
	if room := max(1, p.height-1); len(lines) > room {
		lines = lines[:room]
	}
	for _, line := range lines {
		frame.WriteString(ansi.Truncate(line, max(1, p.width-1), "…"))
		frame.WriteString(clearLine + "\n")
	}
	frame.WriteString(clearBelow + showPaint)
	p.shown = len(lines)
	p.write(frame.Bytes())
}

// print puts text above the frame, for good. The frame is gone until the next one.
func (p *painter) print(text string) {
	var frame bytes.Buffer
	frame.WriteString(holdPaint)
	p.goBack(&frame)
	frame.WriteString(clearBelow + strings.TrimSuffix(text, "\n") + "\n" + showPaint)
	p.shown = 0
	p.write(frame.Bytes())
}

// goBack moves to where the frame began. After a change of size nobody knows
// where that is, since terminals wrap lines anew, so it begins at the top.
func (p *painter) goBack(frame *bytes.Buffer) {
	width, height := p.size()
	resized := p.shown > 0 && (width != p.width || height < p.height)
	p.width, p.height = width, height
	switch {
	case resized:
		frame.WriteString(clearAll)
	case p.shown > 0:
		fmt.Fprintf(frame, "\r\x1b[%dA", p.shown)
	}
}

func (p *painter) write(b []byte) {
	_, _ = p.out.Write(b) // a terminal that went away cannot be told so
}
