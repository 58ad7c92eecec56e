package fleet

// Namespaces that the gateway and its sample fleet live in.
const (
	// PlatformNamespace holds the gateway's own identities.
	PlatformNamespace = "platform-system"
	// CatalogNamespace is where a run's cluster resolver finds its Pipeline.
	CatalogNamespace = "platform-catalog"
	// DemoNamespace holds the ServiceAccounts of the sample callers.
	DemoNamespace = "glidepath-demo"
	// UnrelatedNamespace belongs to no app: nothing in it may ever be reached through an app's name.
	UnrelatedNamespace = "reporting"
)

// Apps of the sample fleet, as a caller names them.
const (
	AppGateAPI     = "gate-api"
	AppShop        = "shop"
	AppBoardingAPI = "boarding-api"
	AppSkyMarshall = "sky-marshall"
	// InfraPostgres is an InfraService: its namespace starts with infra-, not app-.
	InfraPostgres = "postgres"
)

// ClusterRoles on the group glidepath.hangar.io, which no API server serves: the strings alone matter.
const (
	ReaderRole   = "glidepath-api-reader"
	OperatorRole = "glidepath-api-operator"
	ReleaserRole = "glidepath-api-releaser"
)

// ServiceAccounts in PlatformNamespace that the gateway's own processes run as.
const (
	AuthzServiceAccount   = "glidepath-authz"
	LivehubServiceAccount = "glidepath-livehub"
	RunsServiceAccount    = "glidepath-runs"
)

// PipelineServiceAccount is what a pipeline's tasks run as in every app's namespace.
const PipelineServiceAccount = "pipeline-runner"

// AppNamespaces returns the namespaces that hold PipelineRuns, in a fixed order.
func AppNamespaces() []string {
	return []string{
		"app-" + AppGateAPI + "-cicd",
		"app-" + AppShop + "-cicd",
		"app-" + AppBoardingAPI + "-cicd",
		"app-" + AppSkyMarshall + "-cicd",
		"infra-" + InfraPostgres + "-cicd",
	}
}
