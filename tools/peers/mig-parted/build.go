//go:build tools

// Package peers names the program that tools/setup_peers.sh builds.
package peers

import _ "github.com/NVIDIA/mig-parted/cmd/nvidia-mig-parted"
