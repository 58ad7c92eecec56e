package arch

// Check returns one line a violation, each starting with the folder or file at
// fault. The module is the module path that imports within the repository start
// with.
func Check(module string, packages []Package) []string {
	var faults []string
	for _, check := range []func(string, []Package) []string{
		arrows, oneComponent, confined, unlinked, documented, named, short, awake,
	} {
		faults = append(faults, check(module, packages)...)
	}
	return faults
}
