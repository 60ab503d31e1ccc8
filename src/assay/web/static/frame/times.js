// Times in the reader's time zone, which is stated with each.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const day = { day: "numeric", month: "short", year: "numeric" };
const minute = { ...day, hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
const second = { ...minute, second: "2-digit" };
const text = (at, parts) => new Intl.DateTimeFormat("en-GB", parts).format(at);

for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue; // an imported log may state any time
  time.title = `${text(at, second)} (${zone})`;
  if (!("ago" in time.dataset)) time.textContent = text(at, "day" in time.dataset ? day : "second" in time.dataset ? second : minute);
}
for (const option of document.querySelectorAll("option[data-at]")) {
  option.textContent = option.textContent.replace(/[^·]*$/, ` ${text(new Date(option.dataset.at), minute)}`);
}
for (const place of document.querySelectorAll("[data-zone]")) place.textContent = zone;
