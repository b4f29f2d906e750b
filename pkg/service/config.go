package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

// Config are the settings of the frame, the same for every service.
type Config struct {
	// HealthAddress is where /healthz, /readyz and /metrics are served, as
	// host:port; "" serves none of them.
	HealthAddress string
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
	// LogFormat is json or text.
	LogFormat string
	// TraceEndpoint is the URL of an OpenTelemetry collector that takes OTLP
	// over HTTP; "" traces nothing.
	TraceEndpoint string
}

// Bind adds the settings to the flags of a program, with their defaults.
func (c *Config) Bind(fs *pflag.FlagSet) {
	c.bindHealth(fs)
	fs.TextVar(&c.LogLevel, "log-level", slog.LevelInfo, "least `level` that is logged: DEBUG, INFO, WARN or ERROR")
	fs.StringVar(&c.LogFormat, "log-format", "json", "`format` of the log: json or text")
	fs.StringVar(&c.TraceEndpoint, "otel-exporter-otlp-endpoint", "", "send traces to the OpenTelemetry collector at this `URL`")
}

func (c *Config) bindHealth(fs *pflag.FlagSet) {
	fs.StringVar(&c.HealthAddress, "health-address", ":9440", "serve /healthz, /readyz and /metrics on this `host:port`; empty for none")
}

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.LogFormat != "json" && c.LogFormat != "text" {
		errs = append(errs, fmt.Errorf("log-format %q: want json or text", c.LogFormat))
	}
	if c.TraceEndpoint != "" {
		if u, err := url.Parse(c.TraceEndpoint); err != nil || u.Host == "" {
			errs = append(errs, errors.New("otel-exporter-otlp-endpoint: want a URL such as http://collector:4318"))
		}
	}
	return errors.Join(errs...)
}

// EnvName is the environment variable that a flag falls back to: "nats-url" to
// "NATS_URL".
func EnvName(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FromEnv sets each flag that was not given to the value of its environment
// variable, if there is one. An empty variable counts as none: that is what
// deployments leave behind when a value is not set. It reports every value
// that its flag does not take, without showing the value.
func FromEnv(fs *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(EnvName(f.Name))
		if f.Changed || !ok || value == "" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: not a value for --%s (%s)", EnvName(f.Name), f.Name, f.Value.Type()))
		}
	})
	return errors.Join(errs...)
}
