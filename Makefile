# Nothing but Go is needed: what the tests run against is built from Go modules,
# once, and kept in the user's cache folder.

.PHONY: demo test lint cluster build images install.yaml

# The main job, live, on a real API server that is started for it.
demo:
	go run ./test/demo

# Everything: unit tests, the test cluster's own tests, and the end-to-end tests.
test: cluster
	go vet ./...
	go test -timeout 30m -count=1 ./...
	go -C images vet ./...
	go -C images test -timeout 30m -count=1 ./...

# The programs of the test cluster: 4 to 7 minutes on 2 cores, the first time.
# Never inside go test, which would give up after its timeout.
cluster:
	go run ./test/cluster/run --build-only

# The linter comes from a module of its own, and takes minutes to build, the first time.
lint:
	cd tools && go build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...
	cd images && ../bin/golangci-lint run ./...

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ ./cmd/...

# The image of agent and webhook: by Docker where it answers, else without it, as
# bin/krake-observer.oci.tar for amd64 and arm64, with the plugin and what is in all
# that beside it.
images:
	if docker info > /dev/null 2>&1; \
	then docker build -t krake-observer/krake-observer .; \
	else go -C images run . --out ../bin; fi

# bin/install.yaml is manifests/overlays/default for kubectl apply -f, with another image
# by make install.yaml IMAGE=registry.example.org/krake-observer:v1
install.yaml:
	mkdir -p bin
	go run ./manifests/render $(if $(IMAGE),--image $(IMAGE)) > bin/install.yaml.new
	mv bin/install.yaml.new bin/install.yaml
