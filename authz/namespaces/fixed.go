package namespaces

// Fixed knows a set of names that does not change, for decisions about a
// cluster that is not watched. The UID of each is its name.
type Fixed map[string]bool

// Resolve finds the namespace of an app or InfraService, as an Index does.
func (f Fixed) Resolve(app string) (Resolution, error) {
	return resolve(app, func(name string) (Namespace, bool, error) {
		if !f[name] {
			return Namespace{}, false, nil
		}
		return Namespace{Name: name, UID: name}, false, nil
	})
}
