"""From responses to assessments; pure: evaluators ask for what they need and read what they get."""
