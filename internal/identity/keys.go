package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxKeyFile bounds what is read of a file: many times an Ed25519 key.
const maxKeyFile = 4 << 10

// A key is named by what it is: the first 16 hex digits of the SHA-256 of its
// SubjectPublicKeyInfo. So a private and a public file agree without a name
// that somebody has to keep in step.
func keyID(pub ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", fmt.Errorf("naming a key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])[:16], nil
}

func readPrivateKey(file string) (ed25519.PrivateKey, error) {
	der, err := readPEM(file, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		// The parser's error can quote what it read.
		return nil, fmt.Errorf("%s: not a PKCS #8 private key", file)
	}
	priv, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an Ed25519 key", file)
	}
	return priv, nil
}

func readPublicKey(file string) (ed25519.PublicKey, error) {
	der, err := readPEM(file, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: not a public key: %w", file, err)
	}
	pub, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an Ed25519 key", file)
	}
	return pub, nil
}

func readPEM(file, kind string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	if len(raw) > maxKeyFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", file, maxKeyFile)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: no PEM block %q", file, kind)
	}
	return block.Bytes, nil
}

// readPublicKeys reads every *.pem of a directory, by key id. A directory
// without one, or with one that cannot be read, is an error: a backend that
// knows no key, or not all, is misconfigured and must say so.
func readPublicKeys(dir string) (map[string]ed25519.PublicKey, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil {
		return nil, fmt.Errorf("listing identity keys: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: holds no identity key (*.pem)", dir)
	}
	keys := make(map[string]ed25519.PublicKey, len(files))
	var faults []error
	for _, f := range files {
		pub, err := readPublicKey(f)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		id, err := keyID(pub)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		keys[id] = pub
	}
	return keys, errors.Join(faults...)
}

// GenerateKeyPair writes a new private key to privateFile (mode 0600) and its
// public key into publicDir, in the layout that LoadSigner and NewVerifier
// read. Directories are made when they are missing; an existing private key is
// replaced, an older public key stays, so that what it signed still verifies.
func GenerateKeyPair(privateFile, publicDir string) error {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("generating an identity key: %w", err)
	}
	privDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return fmt.Errorf("encoding an identity key: %w", err)
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return fmt.Errorf("encoding an identity key: %w", err)
	}
	id, err := keyID(pub)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(privateFile), 0o700); err != nil {
		return fmt.Errorf("writing an identity key: %w", err)
	}
	if err := os.MkdirAll(publicDir, 0o755); err != nil {
		return fmt.Errorf("writing an identity key: %w", err)
	}
	// The public key first: a signer must never use a key that nobody knows.
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER})
	if err := os.WriteFile(filepath.Join(publicDir, id+".pem"), public, 0o644); err != nil {
		return fmt.Errorf("writing an identity key: %w", err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privDER})
	if err := os.WriteFile(privateFile, private, 0o600); err != nil {
		return fmt.Errorf("writing an identity key: %w", err)
	}
	return nil
}
