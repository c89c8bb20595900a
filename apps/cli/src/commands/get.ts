import { Option } from 'commander'
import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { dataFields, hexDump, safe, decodeUtf8 } from '../text/bytes.ts'
import { statJson, statLines } from '../text/stat.ts'

/** `zabra get`: the data of a node, byte for byte unless a terminal shows it. */
export const get: CommandModule = (program, { io, options, session }) => {
  program
    .command('get')
    .description('print the data of a node: its very bytes, or on a terminal what can be shown of them')
    .argument('<path>', 'the node')
    .option('-s, --stat', 'the stat too')
    .addOption(new Option('-b, --base64', 'in Base64').conflicts('hex'))
    .addOption(new Option('-x, --hex', 'as a hexadecimal dump'))
    .action(async (path: string, asked: { stat?: boolean; base64?: boolean; hex?: boolean }) => {
      const { data, stat } = await session((zk) => zk.getData(path))
      if (options().json)
        return printJson(io, { path, ...dataFields(data), ...(asked.stat ? { stat: statJson(stat) } : {}) })
      const bytes = data ?? new Uint8Array(0)
      const text = decodeUtf8(bytes)
      if (asked.base64) print(io, Buffer.from(bytes).toString('base64'))
      else if (asked.hex) print(io, ...hexDump(bytes))
      else if (io.stdout.isTTY !== true) io.stdout.write(bytes)
      else if (text === undefined) print(io, ...hexDump(bytes))
      else if (bytes.length > 0) print(io, safe(text))
      if (asked.stat) {
        if (io.stdout.isTTY !== true && !asked.base64 && !asked.hex) print(io, '')
        print(io, ...statLines(stat))
      }
      return undefined
    })
}
