import { LOG_PARTS, namedEvents } from './parts.ts'

const routine = namedEvents.filter(({ isRoutine }) => isRoutine).map(({ id }) => id)

const introduction = `# Events of the log

<!-- Generated from packages/server/src/logging: run pnpm --filter @zabra/server gen:docs. Do not edit by hand. -->

Each line of the log has the \`id\` of its event and the \`part\` of the server that it comes from. Ids do not change between releases, so
alarms can name them. Words in braces vary. [monitor.md](monitor.md#read-the-log) says how to set levels and formats.
\`GET /api/v1/events\` [sends them](api.md#the-stream-of-events), but for those at the level \`debug\` and ${routine.map((id) => `\`${id}\``).join(', ')}.

Parts: ${LOG_PARTS.map((part) => `\`${part}\``).join(', ')}.

`

/** Returns the reference page of all events, as Markdown. */
export function renderLogEvents(): string {
  const alarms = namedEvents.filter(({ level }) => level === 'error' || level === 'warn')
  const others = namedEvents.filter((named) => !alarms.includes(named))
  const sections = LOG_PARTS.flatMap((part) => {
    const rows = alarms.filter((named) => named.part === part)
    if (rows.length === 0) return []
    const lines = rows.map(({ id, level, message, means, remedy }) =>
      cells(`\`${id}\``, level, message, means, remedy),
    )
    return [`### ${part}\n\n${table(['id', 'level', 'message', 'means', 'do'], lines)}`]
  })
  const lines = others.map(({ id, level, message }) => cells(`\`${id}\``, level, message))
  return `${introduction}## Errors and warnings\n\n${sections.join('\n')}\n## Other events\n\n${table(['id', 'level', 'message'], lines)}`
}

const cells = (...texts: string[]): string =>
  `| ${texts.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
const table = (titles: string[], lines: string[]): string =>
  [cells(...titles), cells(...titles.map(() => '---')), ...lines, ''].join('\n')
