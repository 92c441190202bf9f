// node checking.mjs SOURCES FILE: what checking.js makes of a request in a JSON file, as JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [sources, file] = process.argv.slice(2);
const names = ["problem", "engine", "weights", "enumerator", "generator", "text"];
const modules = Object.assign({}, ...(await Promise.all(names.map((name) => import(pathToFileURL(`${sources}/${name}.mjs`))))));
const checked = new Function(`${readFileSync(new URL("checking.js", import.meta.url), "utf8")}; return checked`)();
const { files, ...request } = JSON.parse(readFileSync(file, "utf8"));
console.log(JSON.stringify(checked(modules, files, request)));
