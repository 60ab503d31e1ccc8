// Times in the reader's time zone, which is stated with each.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const day = { day: "numeric", month: "short", year: "numeric" };
const minute = { ...day, hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
const text = (at, parts) => new Intl.DateTimeFormat("en-GB", parts).format(at);

for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue; // an imported log may state any time
  const { ago, day: dayOnly, exact } = time.dataset;
  time.title = `${text(at, { ...minute, second: "2-digit" })} (${zone})`;
  if (ago === undefined) time.textContent = text(at, dayOnly !== undefined ? day : exact !== undefined ? { ...minute, second: "2-digit" } : minute);
}
for (const place of document.querySelectorAll("[data-zone]")) place.textContent = zone;
