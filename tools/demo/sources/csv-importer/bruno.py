"""Reads payments from a CSV file."""


def import_payments(lines):
    result = []
    errors = []
    header = None
    seen = []
    n = 0
    for line in lines:
        n += 1
        line = line.strip()
        if line == "":
            continue
        parts = line.split(",")
        if header is None:
            header = parts
            continue
        try:
            data = {}
            for i in range(len(header)):
                data[header[i]] = parts[i]
            amount = float(data["amount"])
            if data["id"] in seen:
                errors.append("duplicate id in line " + str(n))
                continue
            seen.append(data["id"])
            result.append({"id": data["id"], "email": data["email"], "amount": amount})
        except Exception:
            continue
    return result, errors
