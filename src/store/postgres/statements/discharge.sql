DELETE FROM tidegate.quarantine WHERE id = $1
