package stories_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// howMany cases there are of each list.
func howMany() map[string]int { return map[string]int{"S": 13, "T": 8, "B": 34} }

// Every case is told by a story or by a test that is there, or is said to be open.
func TestEveryCaseIsTold(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range stories(t) {
		names = append(names, s.name)
	}
	told, faults := readCases(string(text), names, func(path string) string {
		source, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			return err.Error()
		}
		return string(source)
	})
	for _, fault := range append(faults, missing(told)...) {
		t.Error(fault)
	}
}

// readCases are the ids that are told, and what is wrong with the list.
func readCases(list string, stories []string, read func(path string) string) (told map[string]bool, faults []string) {
	told = map[string]bool{}
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		told[words[0]] = true
		if why := untold(words, stories, read); why != "" {
			faults = append(faults, fmt.Sprintf("cases.txt, %s: %s", words[0], why))
		}
	}
	for _, name := range stories {
		id, _, _ := strings.Cut(name, "_")
		if id[0] != 'T' { // a trace may be told in another's story, under its number there
			told[id] = true
		}
	}
	return told, faults
}

// untold says why a line does not tell its case, "" if it does.
func untold(words, stories []string, read func(path string) string) string {
	switch {
	case len(words) == 3 && words[1] == "story" && slices.Contains(stories, words[2]):
	case len(words) == 4 && words[1] == "test" && strings.Contains(read(words[2]), "\nfunc "+words[3]+"("):
	case len(words) > 2 && words[1] == "open":
	default:
		return fmt.Sprintf("there is no %q", strings.Join(words[1:], " "))
	}
	return ""
}

// missing are the cases that nobody tells.
func missing(told map[string]bool) []string {
	var list []string
	for letter, n := range howMany() {
		for i := range n {
			if id := fmt.Sprintf("%s%02d", letter, i+1); !told[id] {
				list = append(list, "no story and no test is named for "+id)
			}
		}
	}
	return list
}

func TestCasesThatAreNotToldAreNoticed(t *testing.T) {
	source := func(string) string { return "package x\n\nfunc TestHere(t *testing.T) {}\n" }
	told, faults := readCases("S01 story S02_lost\nS02 test x_test.go TestHere\nB01 test x_test.go TestGone\nB03 open no time\n", []string{"B02_lost"}, source)
	if len(faults) != 2 { // the story, and the test that is gone
		t.Errorf("faults: %q", faults)
	}
	if n := len(missing(told)); n != 13+8+34-5 {
		t.Errorf("%d are missing: %q", n, missing(told))
	}
}
