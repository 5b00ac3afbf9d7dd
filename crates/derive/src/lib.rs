//! `#[derive(Op)]`: from a struct of attributes to a declared operation. Everything that would otherwise be spelled a
//! second time (file name, opset, attribute names, defaults, docs) is taken from the struct.
//!
//! ```text
//! /// Keeps positive values and scales negative ones by `alpha`.
//! #[derive(Op, Clone, Debug, PartialEq)]
//! #[op(since = 1, inputs = "data", outputs = "output")]
//! pub struct LeakyRelu {
//!     /// Slope of the negative half-line.
//!     #[attr(default = 0.01)]
//!     pub alpha: f32,
//! }
//! ```
//!
//! Words of `#[op(...)]`: `name`, `xml` (name in files), `since`, `until` (first and last opset), `opset` (home opset
//! name, or the opset of an extension, which then needs no `since`), `also` (further opset names in files), `inputs`,
//! `outputs` (port names; `?` marks an optional one, `...` any number); lists of input numbers: `moves` (elements are only
//! moved), `shape_inputs` (decide shapes), `rows` (rows stay apart); `channel` (axis with weights of its own);
//! `elementwise` (each element of the first input) or `broadcasts` (elements of all inputs together); and `keeps_shape`,
//! `keeps_zero`, `commutative`, `idempotent`, `involution`, `reduces`, `quantizes`, `shape_only`, `own_type`, `heavy`,
//! `random`, `stateful`, `sink`, `no_eval`. `carafe_graph::OpInfo` says what each means. Words of `#[attr(...)]`: `name`, `default`, `internal`; without a default the attribute is required. An internal
//! attribute is used while converting and running and never written to the files of an IR, so it needs a default: that is
//! what a node has that was read from one.
//!
//! The code it writes names `carafe_graph`, which must be in scope: as a dependency, or through `carafe::prelude`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Expr, Field, Fields, Ident, LitInt, LitStr, Type, parse_macro_input};

#[proc_macro_derive(Op, attributes(op, attr))]
pub fn derive_op(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

#[derive(Default)]
struct OpWords {
    name: Option<String>,
    xml: Option<String>,
    since: u32,
    until: Option<u32>,
    opset: Option<String>,
    inputs: Option<String>,
    outputs: Option<String>,
    also: Option<String>,
    /// Lists of input numbers, by field.
    lists: Vec<(Ident, Vec<usize>)>,
    channel: Option<i64>,
    elementwise: Option<Ident>,
    flags: Vec<Ident>,
}

const LISTS: [&str; 3] = ["moves", "shape_inputs", "rows"];

const FLAGS: [&str; 14] = [
    "keeps_shape",
    "keeps_zero",
    "commutative",
    "idempotent",
    "involution",
    "reduces",
    "quantizes",
    "shape_only",
    "own_type",
    "heavy",
    "random",
    "stateful",
    "sink",
    "no_eval",
];

fn op_words(attrs: &[Attribute]) -> syn::Result<OpWords> {
    let mut w = OpWords::default();
    for attr in attrs.iter().filter(|a| a.path().is_ident("op")) {
        attr.parse_nested_meta(|meta| {
            let text = || -> syn::Result<String> { Ok(meta.value()?.parse::<LitStr>()?.value()) };
            let number = || -> syn::Result<u32> { meta.value()?.parse::<LitInt>()?.base10_parse() };
            match meta.path.get_ident().map(|i| i.to_string()).as_deref() {
                Some("name") => w.name = Some(text()?),
                Some("xml") => w.xml = Some(text()?),
                Some("since") => w.since = number()?,
                Some("until") => w.until = Some(number()?),
                Some("opset") => w.opset = Some(text()?),
                Some("inputs") => w.inputs = Some(text()?),
                Some("outputs") => w.outputs = Some(text()?),
                Some("also") => w.also = Some(text()?),
                Some("channel") => {
                    let text = text()?;
                    w.channel = Some(text.parse().map_err(|_| meta.error("channel is an axis"))?);
                }
                Some("elementwise") => w.elementwise = Some(format_ident!("First")),
                Some("broadcasts") => w.elementwise = Some(format_ident!("All")),
                Some(word) if LISTS.contains(&word) => {
                    let text = text()?;
                    let numbers = names(&text).map(|n| n.parse::<usize>());
                    let numbers =
                        numbers.collect::<Result<_, _>>().map_err(|_| meta.error("it lists input numbers"))?;
                    w.lists.push((format_ident!("{word}"), numbers));
                }
                Some(word) if FLAGS.contains(&word) => w.flags.push(format_ident!("{word}")),
                _ => return Err(meta.error("unknown word in #[op(...)]")),
            }
            Ok(())
        })?;
    }
    Ok(w)
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|s| !s.is_empty())
}

fn doc_of(attrs: &[Attribute]) -> String {
    let lines: Vec<String> = attrs
        .iter()
        .filter(|a| a.path().is_ident("doc"))
        .filter_map(|a| match &a.meta.require_name_value().ok()?.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value().trim().to_string()),
            _ => None,
        })
        .collect();
    lines.join(" ")
}

fn ports(list: &str) -> Tokens {
    let ports = names(list).map(|p| {
        let (variadic, optional) = (p.ends_with("..."), p.ends_with('?'));
        let name = p.trim_end_matches("...").trim_end_matches('?');
        quote! { carafe_graph::PortInfo { name: #name, optional: #optional, variadic: #variadic } }
    });
    quote! { &[#(#ports),*] }
}

fn is_body(ty: &Type) -> bool {
    matches!(ty, Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Body"))
}

struct AttrField<'a> {
    field: &'a Field,
    name: String,
    default: Option<Expr>,
    internal: bool,
}

fn attr_field(field: &Field) -> syn::Result<AttrField<'_>> {
    let ident = field.ident.as_ref().expect("named field");
    let mut name = ident.to_string();
    let mut default = None;
    let mut internal = false;
    for attr in field.attrs.iter().filter(|a| a.path().is_ident("attr")) {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("default") {
                default = Some(meta.value()?.parse::<Expr>()?);
            } else if meta.path.is_ident("internal") {
                internal = true;
            } else {
                return Err(meta.error("unknown word in #[attr(...)]"));
            }
            Ok(())
        })?;
    }
    if internal && is_body(&field.ty) {
        return Err(syn::Error::new_spanned(field, "a sub-graph is part of every file and cannot be internal"));
    }
    if internal && default.is_none() {
        let what = "an internal attribute needs a default: it is not written to files, so a node that is read has none";
        return Err(syn::Error::new_spanned(field, what));
    }
    Ok(AttrField { field, name, default, internal })
}

fn expand(input: &DeriveInput) -> syn::Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(input, "an operation is a struct of its attributes"));
    };
    let fields: Vec<AttrField<'_>> = match &data.fields {
        Fields::Named(f) => f.named.iter().map(attr_field).collect::<syn::Result<_>>()?,
        Fields::Unit => vec![],
        Fields::Unnamed(_) => return Err(syn::Error::new_spanned(input, "attributes need names")),
    };
    let unit = matches!(data.fields, Fields::Unit);
    let words = op_words(&input.attrs)?;
    if words.since == 0 && words.opset.is_none() {
        return Err(syn::Error::new_spanned(&input.ident, "say #[op(since = N)] or #[op(opset = \"...\")]"));
    }
    let ident = &input.ident;
    let name = words.name.unwrap_or_else(|| ident.to_string());
    let xml = words.xml.unwrap_or_else(|| name.clone());
    let since = words.since;
    let until = match (since, words.until) {
        (0, _) => quote!(0),
        (_, Some(n)) => quote!(#n),
        (_, None) => quote!(carafe_graph::NEWEST_OPSET),
    };
    let opset = words.opset.unwrap_or_else(|| format!("opset{since}"));
    let inputs = ports(words.inputs.as_deref().unwrap_or("data"));
    let outputs = ports(words.outputs.as_deref().unwrap_or("output"));
    let also: Vec<&str> = names(words.also.as_deref().unwrap_or_default()).collect();
    let lists = words.lists.iter().map(|(field, numbers)| quote!(#field: &[#(#numbers),*],));
    let channel = words.channel.map(|axis| quote!(channel: Some(#axis),));
    let elementwise = words.elementwise.iter().map(|e| quote!(elementwise: carafe_graph::Elementwise::#e,));
    let flags = words.flags.iter();
    // The library declares its operations with this derive too.
    let builtin = matches!(std::env::var("CARGO_PKG_NAME").as_deref(), Ok("carafe-ops" | "carafe-graph"));
    let doc = doc_of(&input.attrs);

    let infos = fields.iter().map(|f| {
        let (name, ty, doc, internal) = (&f.name, &f.field.ty, doc_of(&f.field.attrs), f.internal);
        let default = match &f.default {
            Some(e) => {
                let text = quote!(#e).to_string();
                quote!(Some(#text))
            }
            None => quote!(None),
        };
        quote! { carafe_graph::AttrInfo {
            name: #name, kind: <#ty as carafe_graph::Attr>::KIND, default: #default, doc: #doc,
            internal: #internal,
        } }
    });
    let writes = fields.iter().map(|f| {
        let (name, id) = (&f.name, &f.field.ident);
        quote! { carafe_graph::write_attr(&mut out, #name, &self.#id); }
    });
    let reads = fields.iter().map(|f| {
        let (name, id, ty) = (&f.name, &f.field.ident, &f.field.ty);
        match &f.default {
            Some(e) => quote! { #id: attrs.read::<#ty>(#name, Some({ let d: #ty = #e; d }))? },
            None => quote! { #id: attrs.read::<#ty>(#name, None)? },
        }
    });
    let bodies: Vec<_> = fields.iter().filter(|f| is_body(&f.field.ty)).collect();
    let body_names: Vec<&String> = bodies.iter().map(|f| &f.name).collect();
    let body_ids: Vec<_> = bodies.iter().map(|f| &f.field.ident).collect();
    let all_bodies = (!bodies.is_empty()).then(|| {
        quote! {
            fn bodies(&self) -> ::std::vec::Vec<(&'static str, &carafe_graph::Body)> {
                vec![#((#body_names, &self.#body_ids)),*]
            }
            fn bodies_mut(&mut self) -> ::std::vec::Vec<(&'static str, &mut carafe_graph::Body)> {
                vec![#((#body_names, &mut self.#body_ids)),*]
            }
        }
    });
    let make = if unit { quote!(#ident) } else { quote!(#ident { #(#reads),* }) };

    Ok(quote! {
        impl carafe_graph::OpDecl for #ident {
            fn info(&self) -> &'static carafe_graph::OpInfo { <Self as carafe_graph::OpNew>::INFO }
            #[allow(unused_mut)]
            fn attrs(&self) -> ::std::vec::Vec<(::std::borrow::Cow<'static, str>, carafe_graph::AttrValue)> {
                let mut out = ::std::vec::Vec::new();
                #(#writes)*
                out
            }
            fn as_any(&self) -> &dyn ::std::any::Any { self }
            fn eq_op(&self, other: &dyn carafe_graph::Op) -> bool {
                match other.as_any().downcast_ref::<Self>() {
                    Some(other) => self == other,
                    None => false,
                }
            }
            #all_bodies
            fn clone_op(&self) -> ::std::boxed::Box<dyn carafe_graph::Op> {
                ::std::boxed::Box::new(::std::clone::Clone::clone(self))
            }
        }
        impl carafe_graph::OpNew for #ident {
            // A static, because a promoted constant may have several addresses, and declarations are told apart by theirs.
            const INFO: &'static carafe_graph::OpInfo = {
                static INFO: carafe_graph::OpInfo = carafe_graph::OpInfo {
                    name: #name,
                    xml_name: #xml,
                    opset: #opset,
                    since: #since,
                    until: #until,
                    inputs: #inputs,
                    outputs: #outputs,
                    attrs: &[#(#infos),*],
                    doc: #doc,
                    also: &[#(#also),*],
                    builtin: #builtin,
                    #(#lists)*
                    #channel
                    #(#elementwise)*
                    #(#flags: true,)*
                    ..carafe_graph::OpInfo::PLAIN
                };
                &INFO
            };
            #[allow(unused_variables)]
            fn from_attrs(attrs: &carafe_graph::AttrMap) -> carafe_graph::Result<Self> { Ok(#make) }
        }
    })
}
