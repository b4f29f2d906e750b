package agent

import (
	"context"
	"crypto/md5" //nolint:gosec // Ironic takes MD5 checksums, so the agent does
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// maxChecksums bounds a file of checksums.
const maxChecksums = 1 << 20

// write downloads an image, checks it, and enters it as what is on the disk.
func (a *agent) write(args obj) error {
	info, _ := args["image_info"].(obj)
	addresses, _ := info["urls"].([]any)
	if len(addresses) == 0 {
		return errors.New("no address of an image was given")
	}
	address, _ := addresses[0].(string)
	sum, err := a.fleet.checksum(a.ctx, info)
	if err != nil {
		return err
	}
	body, err := a.fleet.download(a.ctx, address)
	if err != nil {
		return err
	}
	defer body.Close()
	algorithm, _ := info["os_hash_algo"].(string)
	digest := digestOf(algorithm, sum)
	if _, err := io.Copy(digest, body); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != sum {
		return fmt.Errorf("image failed to verify against checksum: expected %s, got %s", sum, got)
	}
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	d := &a.fleet.place(a.boot.Host.ID()).disk
	d.Image, d.Checksum, d.ConfigDrive = address, sum, configDrive(args["configdrive"])
	d.Writes++
	a.boot.WriteDisk(address)
	return nil
}

// checksum is the one that the image is to have. It may be given as the address of
// a file of checksums.
func (f *Fleet) checksum(ctx context.Context, info obj) (string, error) {
	sum, _ := info["os_hash_value"].(string)
	if sum == "" {
		sum, _ = info["checksum"].(string)
	}
	if !strings.HasPrefix(sum, "http") {
		return sum, nil
	}
	body, err := f.download(ctx, sum)
	if err != nil {
		return "", err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxChecksums))
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(b))
	if len(words) == 0 {
		return "", fmt.Errorf("the file of checksums %s is empty", sum)
	}
	return words[0], nil
}

// digestOf picks the algorithm that is named, or the one whose checksums are so
// long.
func digestOf(algorithm, sum string) hash.Hash {
	switch {
	case algorithm == "sha512" || len(sum) == 2*sha512.Size:
		return sha512.New()
	case algorithm == "md5" || len(sum) == 2*md5.Size:
		return md5.New() //nolint:gosec // see the import
	default:
		return sha256.New()
	}
}

// configDrive unpacks the drive, which comes as base64 of a compressed ISO.
func configDrive(v any) []byte {
	text, _ := v.(string)
	if b, err := base64.StdEncoding.DecodeString(text); err == nil {
		return b
	}
	return []byte(text)
}
