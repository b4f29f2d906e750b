package bmcsim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// identity gives whatever tells one simulated machine from another. All of it
// follows from the seed and the host's number, so nothing of it is stored and a
// restart finds the same rack.
type identity struct {
	seed   string
	number int
}

// sum is a digest of the host's number for one purpose.
func (i identity) sum(purpose string) []byte {
	h := hmac.New(sha256.New, []byte(i.seed))
	fmt.Fprintf(h, "%s/%d", purpose, i.number)
	return h.Sum(nil)
}

func (i identity) uuid() string {
	b := i.sum("uuid")[:16]
	b[6] = b[6]&0x0f | 0x40 // RFC 9562: version 4
	b[8] = b[8]&0x3f | 0x80 // and its variant
	x := hex.EncodeToString(b)
	return strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
}

// password is 16 letters and digits. It is as secret as the seed.
func (i identity) password() string {
	return base32.StdEncoding.EncodeToString(i.sum("password"))[:16]
}

// mac is a locally administered address, told apart by host and port up to two
// million hosts of eight ports.
func (i identity) mac(port int) string {
	rack := identity{seed: i.seed}.sum("rack")
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(i.number)<<3|uint32(port)&7) //nolint:gosec // numbers of hosts are small and positive
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", rack[0], rack[1], n[1], n[2], n[3])
}

// serial is a serial number of n characters for a part of the machine.
func (i identity) serial(part string, n int) string {
	return base32.StdEncoding.EncodeToString(i.sum("serial/" + part))[:n]
}

// naa is the world wide name of a disk, as 16 hexadecimal digits.
func (i identity) naa(part string) string {
	return "5000" + strings.ToUpper(hex.EncodeToString(i.sum("naa/" + part)[:6]))
}
