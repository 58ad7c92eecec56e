package devenv

import (
	"context"
	"path/filepath"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/seal"
)

// identityFiles are what the gateway's processes are told apart by. Each process is given its own files alone.
type identityFiles struct {
	authzKubeconfig, livehubKubeconfig string
	runsKubeconfig                     string
	identityKey, identityKeysDir       string
	sealKey, runsSealKey               string
	renewalKeys                        string
}

// identities makes the keys, and kubeconfigs with the ServiceAccounts that the fleet gave their rights.
func (g *Gateway) identities(ctx context.Context) (identityFiles, error) {
	dir := filepath.Join(g.cfg.Dir, "identities")
	ids := identityFiles{
		authzKubeconfig:   filepath.Join(dir, "authz.kubeconfig"),
		livehubKubeconfig: filepath.Join(dir, "livehub.kubeconfig"),
		runsKubeconfig:    filepath.Join(dir, "runs.kubeconfig"),
		identityKey:       filepath.Join(dir, "authz", "identity.pem"),
		identityKeysDir:   filepath.Join(dir, "identity-keys"),
		sealKey:           filepath.Join(dir, "livehub.seal"),
		runsSealKey:       filepath.Join(dir, "runs.seal"),
		renewalKeys:       filepath.Join(dir, "authz", "renewal.keys"),
	}
	if err := identity.GenerateKeyPair(ids.identityKey, ids.identityKeysDir); err != nil {
		return ids, err
	}
	if err := seal.GenerateKeyFile(ids.runsSealKey); err != nil {
		return identityFiles{}, err
	}
	if err := seal.GenerateKeyFile(ids.sealKey); err != nil {
		return ids, err
	}
	if err := seal.GenerateKeyFile(ids.renewalKeys); err != nil {
		return ids, err
	}
	for file, account := range map[string]string{
		ids.authzKubeconfig:   fleet.AuthzServiceAccount,
		ids.livehubKubeconfig: fleet.LivehubServiceAccount,
		ids.runsKubeconfig:    fleet.RunsServiceAccount,
	} {
		if err := g.APIServer.WriteKubeconfig(ctx, file, g.kubeURL(), fleet.PlatformNamespace, account); err != nil {
			return ids, err
		}
	}
	return ids, nil
}
