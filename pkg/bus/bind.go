package bus

import "github.com/spf13/pflag"

// Bind adds the settings to the flags of a program, with their defaults. What
// they hold may also come from the environment, as for all flags.
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.URLs, "nats-url", []string{"nats://127.0.0.1:4222"}, "NATS `servers`, separated by commas")
	fs.StringVar(&c.Cluster, "cluster", "default", "`token` that sets this installation apart on a shared NATS; choose it once")
	fs.StringVar(&c.Auth.CredsFile, "nats-creds-file", "", "`file` with a user JWT and its seed")
	fs.StringVar(&c.Auth.NKeyFile, "nats-nkey-file", "", "`file` with an NKey seed")
	fs.StringVar(&c.Auth.JWTFile, "nats-jwt-file", "", "`file` with a user JWT; its seed is in --nats-nkey-file")
	fs.StringVar(&c.Auth.UserFile, "nats-user-file", "", "`file` with a user name")
	fs.StringVar(&c.Auth.PasswordFile, "nats-password-file", "", "`file` with the user's password")
	fs.StringVar(&c.TLS.CAFile, "nats-ca-file", "", "`file` with the certificates that NATS servers are checked against")
	fs.StringVar(&c.TLS.CertFile, "nats-cert-file", "", "`file` with the client certificate")
	fs.StringVar(&c.TLS.KeyFile, "nats-key-file", "", "`file` with the key of the client certificate")
	fs.StringVar(&c.APIPrefix, "nats-api-prefix", "", "`subject` prefix of the JetStream API where an account imports it under another name")
	fs.StringVar(&c.StateDir, "state-dir", "", "`directory` of this process alone, for notes on which messages are in hand")
	fs.IntVar(&c.Workers, "workers", 0, "`hosts` that are handled at once; 0 is 256")
}
