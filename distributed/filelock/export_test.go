package filelock

// OpenFiles returns how many lock files this process has open.
func OpenFiles() int {
	files.mu.RLock()
	defer files.mu.RUnlock()
	return len(files.byID)
}

// OpenNames returns how many names lead to them.
func OpenNames() int {
	files.mu.RLock()
	defer files.mu.RUnlock()
	return len(files.byPath)
}
