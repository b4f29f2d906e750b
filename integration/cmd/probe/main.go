// Command probe asks a URL and ends well when it answers 200: a health check
// for the images of programs that have none themselves, nor a shell.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

const patience = 3 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("which URL? usage: probe URL")
	}
	client := http.Client{Timeout: patience}
	resp, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", args[0], resp.Status)
	}
	return nil
}
