package bmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/bmc-toolbox/bmclib/v2/providers/ipmitool"
)

// defaultIPMIPort is where BMCs speak IPMI.
const defaultIPMIPort = 623

// cipherSuite is the one that is used: 17 is what current BMCs have and what
// ipmitool takes by itself. Trying several would be a failed login each.
const cipherSuite = "17"

// IPMITarget says which machine is meant and how its BMC is entered by IPMI.
type IPMITarget struct {
	Host        string // name or address; IPv6 without brackets
	Port        int    // 623 if 0
	Credentials Credentials
}

// IPMI is a handle on the power of one machine whose BMC speaks IPMI. Each call runs
// the program ipmitool, which has to be there; it reads the password from its
// environment, so that no list of processes shows it. Calls take seconds.
type IPMI struct {
	pool    *Pool
	target  IPMITarget
	address string
	key     laneKey
}

// IPMI gives a handle on one machine. It fails if the target is no address; whether
// ipmitool is there is found out by the first call.
func (p *Pool) IPMI(t IPMITarget) (*IPMI, error) {
	if t.Port == 0 {
		t.Port = defaultIPMIPort
	}
	if t.Host == "" || strings.ContainsAny(t.Host, "[]/@ ") || t.Port < 1 || t.Port > 65535 {
		return nil, fmt.Errorf("bmc: %q with port %d is no address for IPMI", scrub(t.Host), t.Port)
	}
	address := "ipmi://" + net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
	return &IPMI{pool: p, target: t, address: address, key: laneKey{login: p.keyOf(address, t.Credentials)}}, nil
}

// String is the address, without credentials.
func (i *IPMI) String() string { return i.address }

// State reads the power; health and boot are not told by IPMI.
func (i *IPMI) State(ctx context.Context) (State, error) {
	var s State
	err := i.run(ctx, "read the power", func(ctx context.Context, c *ipmitool.Conn) error {
		said, err := c.PowerStateGet(ctx)
		if err != nil {
			return err
		}
		s.Power = ipmiPower(said)
		return nil
	})
	return s, err
}

func ipmiPower(said string) Power {
	said = strings.ToLower(said)
	switch {
	case strings.HasSuffix(strings.TrimSpace(said), "on"):
		return PowerOn
	case strings.HasSuffix(strings.TrimSpace(said), "off"):
		return PowerOff
	default:
		return PowerUnknown
	}
}

// SetPower gives a command. Restart is not known to IPMI and is refused; the machine
// has to be on for Cycle.
func (i *IPMI) SetPower(ctx context.Context, a Action) error {
	word, known := map[Action]string{TurnOn: "on", TurnOff: "off", ShutDown: "soft", Cycle: "cycle"}[a]
	op := "command power " + string(a)
	if !known {
		return &Error{Reason: ErrRefused, Op: op, BMC: i.address, Detail: "IPMI cannot do it", Advice: "use shutdown and on, or cycle"}
	}
	return i.run(ctx, op, func(ctx context.Context, c *ipmitool.Conn) error {
		// bmclib looks at the power before most commands and takes no answer for
		// "off"; a look of our own costs one login and tells what is wrong with it.
		said, err := c.PowerStateGet(ctx)
		if err != nil || a.done(ipmiPower(said)) {
			return err
		}
		_, err = c.PowerSet(ctx, word)
		return err
	})
}

// SetBootOnce makes the next boot, and only that, come from a device.
func (i *IPMI) SetBootOnce(ctx context.Context, d Device, mode BootMode) error {
	word, known := map[Device]string{None: "none", Cd: "cdrom", Hdd: "disk", Pxe: "pxe"}[d]
	op := "set the boot device to " + string(d)
	if !known {
		return &Error{Reason: ErrRefused, Op: op, BMC: i.address, Detail: "IPMI does not know this device", Advice: "use Cd, Hdd or Pxe"}
	}
	return i.run(ctx, op, func(ctx context.Context, c *ipmitool.Conn) error {
		_, err := c.BootDeviceSet(ctx, word, false, mode == UEFI)
		return err
	})
}

// ipmiCall is what is done with bmclib's client.
type ipmiCall func(context.Context, *ipmitool.Conn) error

// run makes one call in the lane's turn.
func (i *IPMI) run(ctx context.Context, op string, f ipmiCall) error {
	l, err := i.pool.borrow(&BMC{pool: i.pool, base: i.address, creds: i.target.Credentials, key: i.key}) //nolint:contextcheck // as in converse
	if err != nil {
		return err
	}
	defer i.pool.give(l)
	if e := l.ipmi(ctx, i, f); e != nil {
		e.Op, e.BMC = op, i.address
		return e
	}
	return nil
}

func (l *lane) ipmi(ctx context.Context, i *IPMI, f ipmiCall) *Error {
	if e := l.take(ctx); e != nil {
		return e
	}
	defer l.leave()
	if l.pool.failed.has(l.key.login) {
		e := l.wrongCredentials(nil)
		e.NotTried = true
		return e
	}
	if e := l.breaker.open(l.pool.cfg.Now()); e != nil {
		return e
	}
	// bmclib puts host and port together without brackets, so an IPv6 address gets
	// them here; it takes them off again.
	host := i.target.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	c, err := ipmitool.New(host, l.creds.user, l.creds.reveal(),
		ipmitool.WithPort(strconv.Itoa(i.target.Port)), ipmitool.WithCipherSuite(cipherSuite), ipmitool.WithIpmitoolPath(l.pool.cfg.IPMITool))
	if err != nil {
		return noIPMITool()
	}
	limited, cancel := context.WithTimeout(ctx, l.pool.cfg.RequestTimeout)
	defer cancel()
	if err := f(limited, c); err != nil {
		return l.ipmiError(ctx, limited, err)
	}
	l.breaker.ok()
	return nil
}

func noIPMITool() *Error {
	return &Error{
		Reason: ErrNoIPMITool, Detail: "IPMI needs the program ipmitool, and it is not there",
		Advice: "install ipmitool beside this program (its container images have none), use a redfish address, or use the Ironic backend",
	}
}

// ipmiError makes sense of what ipmitool printed.
func (l *lane) ipmiError(ctx, limited context.Context, err error) *Error {
	text := l.scrub(err.Error())
	said := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case ctx.Err() != nil:
		return l.callerGone(ctx)
	case limited.Err() != nil:
		e := l.noAnswer()
		l.breaker.fail(l.pool.cfg.Now(), e)
		return e
	case errors.Is(err, exec.ErrNotFound):
		return noIPMITool()
	case said("RAKP 2 HMAC is invalid", "unauthorized name", "Unauthorized name", "Invalid user name"):
		return l.rejected(nil)
	case said("Unable to establish", "Address lookup"):
		e := &Error{
			Reason: ErrUnreachable, Detail: "no IPMI session with " + l.base + " came about: " + text,
			Advice: "check address, user name, password, and that the BMC allows IPMI over LAN with cipher suite " + cipherSuite,
		}
		l.breaker.fail(l.pool.cfg.Now(), e)
		return e
	default:
		return &Error{Reason: ErrRefused, Detail: "ipmitool says: " + text, Advice: "check that the user has the rights of an operator"}
	}
}
