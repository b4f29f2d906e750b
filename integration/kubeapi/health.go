package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// healthPatience is how long a server may take to say that it is ready.
const healthPatience = 5 * time.Second

// askHealth says what keeps the API that runs in dir from being ready.
func askHealth(ctx context.Context, dir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigIn(dir))
	if err != nil {
		return err
	}
	return checkReady(ctx, config)
}

// checkReady says what keeps a server from being ready.
func checkReady(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("not ready: %s", reason)
	}
	return nil
}
