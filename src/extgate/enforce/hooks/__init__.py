"""The doors that runtimes open themselves: a process for each call, which reads it on stdin and answers."""
