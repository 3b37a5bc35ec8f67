# Both commands in one image:
#   docker build -t krake-observer/krake-observer .
ARG BUILDER=golang:1.26
ARG BASE=gcr.io/distroless/static:nonroot

FROM ${BUILDER} AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/ ./cmd/agent ./cmd/webhook

FROM ${BASE}
COPY --from=build /out/agent /out/webhook /
USER 65532:65532
CMD ["/agent"]
