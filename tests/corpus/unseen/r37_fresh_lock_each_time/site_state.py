title = "welcome"
visits = 0
