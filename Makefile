# Nothing but Go is needed: what the tests run against is built from Go modules,
# once, and kept in the user's cache folder.

# As in the images, and as where no C compiler is installed. With both kinds of builds, the cache
# has all packages twice.
export CGO_ENABLED = 0

.PHONY: pictures demo test test-programs test-all planted mutation compat fuzz oracle faults lint cluster build images install.yaml chart reference e2e release bench

# The main job, live, on a real API server that is started for it.
demo:
	go run ./test/demo

# The test runner comes from the module in tools/. The packages share one control plane and the programs of the
# product; suites, which take longest, start first.
test-programs: cluster
	cd tools && go build -o ../bin/gotestsum gotest.tools/gotestsum
	go build -ldflags=-w -o bin/programs/ ./cmd/...

GOTESTSUM = KRAKE_TEST_PROGRAMS=$(CURDIR)/bin/programs go run ./test/cluster/run --share -- bin/gotestsum --format pkgname-and-test-fails
# go vet is a part of make lint. Without debug information, which no test needs, the programs of the tests are linked in
# two thirds of the time.
ONCE      = -count=1 -vet=off -ldflags=-w
GOTEST    = $(ONCE) -timeout 30m -p 3 $(TESTFLAGS) ./test/kubectl ./test/... ./...

# What a commit needs: every package, without the tests and the suites that take long, once the test cluster is
# built. The tests that are left to make test-all are skipped, but not listed; a suite that is has no tests.
test: test-programs
	$(GOTESTSUM) --hide-summary skipped --junitfile bin/test.xml -- -short $(GOTEST)

# Everything: what make test runs, without -short, and before it new inputs for what reads those of others, the
# images, Argo CD's and Flux's view of Applications, the page of kubectl krake ui in a browser, the measuring programs, and a sample of planted bugs.
test-all: test-programs
	$(MAKE) --jobs=4 --output-sync planted $(MODULES:%=tests-of/%) fuzz
	$(GOTESTSUM) --junitfile bin/test-all.xml -- $(GOTEST)

# The tests of the other modules. The slowest ones, which mostly wait, begin first.
MODULES = test/ui test/bench images test/gitops
tests-of/%: export KRAKE_TEST_PROGRAMS = $(CURDIR)/bin/programs
tests-of/%:
	go -C $* test $(ONCE) -timeout 30m ./...

# A sample of the planted bugs. It mostly waits: some tests need their whole timeout to see a bug.
planted:
	go run ./test/mutants --sample 6 --results bin/mutants.md

# Some new inputs for each of what decodes a manifest, parses a schema, mangles it, compares,
# make a patch, and reads annotations: what breaks one is kept in testdata/fuzz. Their
# number is what half a minute is good for; make fuzz FUZZ=1h is for a release.
fuzz:
	go test -vet=off -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(or $(FUZZ),15000x) -fuzzminimizetime 10x ./pkg/manifest
	for law in FuzzBytes FuzzOracle FuzzPatch; do \
		go test -vet=off -run '^$$' -fuzz "^$$law\$$" -fuzztime $(or $(FUZZ),15000x) -fuzzminimizetime 10x ./pkg/schema || exit 1; \
	done
	go test -vet=off -run '^$$' -fuzz '^FuzzSettings$$' -fuzztime $(or $(FUZZ),3000x) -fuzzminimizetime 10x ./pkg/mutate
	go test -vet=off -run '^$$' -fuzz '^FuzzObjects$$' -fuzztime $(or $(FUZZ),3000x) -fuzzminimizetime 10x ./internal/compose
	go test -vet=off -run '^$$' -fuzz '^FuzzGuard$$' -fuzztime $(or $(FUZZ),2000x) -fuzzminimizetime 10x ./internal/agent/guard

# For breadth, outside the gate: gremlins changes each condition and each operator of these packages, one at a time,
# and lists the changes that no test notices. It takes hours: make mutation PACKAGES=./pkg/application takes minutes.
mutation: export GOFLAGS = -short
mutation: cluster
	go -C tools/mutation build -o ../../bin/gremlins github.com/go-gremlins/gremlins/cmd/gremlins
	for package in $(or $(PACKAGES),./pkg/schema ./pkg/mutate ./pkg/observer ./pkg/application); do \
		bin/gremlins unleash $$package --workers 1 --timeout-coefficient 20 --output bin/mutation-$$(basename $$package).json || exit 1; \
	done

# The end-to-end tests alone: in Pods on kind where Docker answers, on the cluster of
# KRAKE_E2E_KUBECONFIG, or beside a control plane of their own.
e2e: cluster
	go test -timeout 40m -count=1 -v ./test/e2e

# The suites that depend most on the API server, on another version of Kubernetes, built from its
# modules: make compat KUBERNETES=1.33
compat: export KRAKE_TEST_KUBERNETES = $(or $(KUBERNETES),$(error set KUBERNETES, such as make compat KUBERNETES=1.33))
compat: cluster
	go test -short -timeout 40m -count=1 ./test/e2e ./test/admission ./test/policies

# Random changes of objects of many kinds, which webhook and agent repair, compared with what an apply would do:
# about an hour, and hours with DRIFTS=100000. INSTALLS is a folder with manifests of public installations, which
# must also be at rest for QUIET, and whose objects then drift once.
oracle: cluster
	KRAKE_ORACLE_DRIFTS=$(or $(DRIFTS),20000) KRAKE_INSTALLS=$(INSTALLS) KRAKE_ORACLE_QUIET=$(QUIET) KRAKE_ORACLE_SHARE=1 go test -timeout 0 -count=1 -v ./test/oracle

# test/faults with larger samples: those of make test-all, this many times.
ROUNDS ?= 20
faults: cluster
	KRAKE_FAULTS_ROUNDS=$(ROUNDS) go test -timeout 0 -count=1 -v ./test/faults

# Drift under load, beside others, and what admission costs (docs/speed.md): some hours, or
# minutes with ARGS=--quick. The results are in bin/load.txt, in the format of Go's benchmarks; benchstat
# shows their medians, and what differs.
bench: cluster
	go -C test/bench build -o ../../bin/load ./load
	bin/load $(ARGS) > bin/load.txt; measured=$$?; \
	go -C test/bench tool benchstat -table .name -col '/who@($(WHO))' ../../bin/load.txt && exit $$measured

# The columns of the tables; each is compared with the first that the table has.
WHO = floor plain nothing former ours gitops trivial-webhook our-patch rights-known rights-asked-for

# The programs of the test cluster: 4 to 7 minutes on 2 cores, the first time.
# Never inside go test, which would give up after its timeout.
cluster:
	go run ./test/cluster/run --build-only

# The linter comes from a module of its own, and takes minutes to build, the first time.
# actionlint needs a different version of a shared dependency.
lint:
	cd tools && go build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=
	cd images && ../bin/golangci-lint run ./...
	cd test/gitops && ../../bin/golangci-lint run ./...
	cd test/ui && ../../bin/golangci-lint run ./...
	cd test/bench && ../../bin/golangci-lint run ./...

build:
	go build -trimpath -ldflags "-s -w" -o bin/ ./cmd/...
	install cmd/kubectl-krake/kubectl_complete-krake bin/

# The image of all servers: by Docker where it answers, else without it, as
# bin/krake-observer.oci.tar for amd64 and arm64, with the plugin and what is in all
# that beside it.
images:
	if docker info > /dev/null 2>&1; \
	then docker build -t krake-observer/krake-observer .; \
	else go -C images run . --out ../bin; fi

# What a release is made of, for VERSION=v1.2.3, and IMAGE=registry.example.org/krake-observer:v1.2.3
# sent to its registry, as docker login says who may.
release:
	go -C images run . --out ../bin --name "$(IMAGE)" --push --release "$(VERSION)"

# bin/install.yaml is manifests/overlays/default for kubectl apply -f, with another image
# by make install.yaml IMAGE=registry.example.org/krake-observer:v1
install.yaml:
	mkdir -p bin
	go run ./manifests/render $(if $(IMAGE),--image $(IMAGE)) > bin/install.yaml.new
	mv bin/install.yaml.new bin/install.yaml

# bin/chart is a Helm chart of the overlays, for helm install krake bin/chart.
chart:
	rm -rf bin/chart
	go run ./manifests/render --chart bin/chart $(if $(IMAGE),--image $(IMAGE))

# docs/ui/*.png, from a browser. All pictures, also dark and narrow ones, are in bin/pictures.
pictures: cluster
	rm -rf bin/pictures && mkdir -p bin/pictures
	KRAKE_BROWSER_REQUIRED=yes KRAKE_PICTURES=$(CURDIR)/bin/pictures go -C test/ui test -count=1 -run '^TestPictures$$' ./...
	for name in overview application lens; do cp bin/pictures/$$name-light-wide.png docs/ui/$$name.png; done

# docs/reference.md, from the code.
reference:
	go run ./test/docs/reference > docs/reference.md.new
	mv docs/reference.md.new docs/reference.md
