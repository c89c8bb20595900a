/** Made at first use: the data of a locale takes a tenth of the start of a command. */
let format: Intl.DateTimeFormat | undefined

const createFormat = (): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
    year: 'numeric',
  })

/** Formats a time as Java's `Date` does, in the local time zone: `Fri Nov 20 23:22:18 UTC 2026`. */
export function javaDate(ms: number): string {
  format ??= createFormat()
  const of = Object.fromEntries(format.formatToParts(new Date(ms)).map(({ type, value }) => [type, value]))
  return `${of['weekday']} ${of['month']} ${of['day']} ${of['hour']}:${of['minute']}:${of['second']} ${of['timeZoneName']} ${of['year']}`
}
