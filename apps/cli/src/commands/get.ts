import { Option } from 'commander'
import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { dataOrNull } from '../session/node-data.ts'
import { dataFields, hexDump, safe, decodeUtf8 } from '../text/bytes.ts'
import { statJson, statLines } from '../text/stat.ts'

/** `zabra get`: prints the data of a node, escaped on a terminal and byte for byte elsewhere. */
export const get: CommandModule = (program, { io, options, session }) => {
  program
    .command('get')
    .description('print the data of a node: escaped on a terminal, byte for byte elsewhere')
    .argument('<path>', 'the node')
    .option('-s, --stat', 'print the stat too')
    .addOption(new Option('-b, --base64', 'print in Base64').conflicts('hex'))
    .addOption(new Option('-x, --hex', 'print a hexadecimal dump'))
    .action(async (path: string, flags: { stat?: boolean; base64?: boolean; hex?: boolean }) => {
      const found = await session((zk) => zk.getData(path))
      const { data: bytes, stat } = found
      if (options().json)
        return printJson(io, {
          path,
          ...dataFields(dataOrNull(found)),
          ...(flags.stat ? { stat: statJson(stat) } : {}),
        })
      const text = decodeUtf8(bytes)
      if (flags.base64) print(io, Buffer.from(bytes).toString('base64'))
      else if (flags.hex) print(io, ...hexDump(bytes))
      else if (io.stdout.isTTY !== true) io.stdout.write(bytes)
      else if (text === undefined) print(io, ...hexDump(bytes))
      else if (bytes.length > 0) print(io, safe(text))
      if (flags.stat) {
        if (io.stdout.isTTY !== true && !flags.base64 && !flags.hex) print(io, '')
        print(io, ...statLines(stat))
      }
      return undefined
    })
}
