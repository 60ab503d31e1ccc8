"""From columns of what counts to findings; pure."""
