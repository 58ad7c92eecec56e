package authz

import (
	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/self"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/internal/identity"
)

// keys are the two halves of identities in this process, and what seals the
// tickets of streams.
type keys struct {
	signer   *identity.RotatingSigner
	verifier *identity.Verifier
	tickets  *ticket.Sealer // nil where no streams are renewed
}

// loadKeys reads all of them.
func loadKeys(c Config) (*keys, error) {
	signer, err := identity.NewRotatingSigner(identity.RotatingConfig{PrivateKey: c.IdentityKey, KeysDir: c.IdentityKeysDir})
	if err != nil {
		return nil, err
	}
	verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: c.IdentityKeysDir, Backend: self.Backend})
	if err != nil {
		return nil, err
	}
	k := &keys{signer: signer, verifier: verifier}
	if c.Renewals.Enabled() {
		k.tickets, err = ticket.NewSealer(c.Renewals.Keys)
	}
	return k, err
}

func (k *keys) register(reg prometheus.Registerer) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_authz_identity_key_pending",
		Help: "1 while the file of the identity key holds another key than the one that signs, or none.",
	}, func() float64 {
		if k.signer.Pending() {
			return 1
		}
		return 0
	}))
}
